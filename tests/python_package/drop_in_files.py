"""Files for the tests of `weigh.safetensors`, and what a call does, to be compared with what the original does."""

import json
import struct
import sys
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "conformance" / "format"
sys.path.insert(0, str(CORPUS))

from oracle import BITS  # noqa: E402


def file_of(header, data=b""):
    """A file's content: a header, as an object or as it is, and its data."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def file_of_tensors(tensors, metadata=None):
    """A sound file of ``{name: (dtype, shape, bytes)}``."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return file_of(text + b" " * (-len(text) % 8), data)


def content_of(dtype, elements):
    """Bytes of so many elements, all of them plain numbers, not all alike."""
    size = elements * BITS[dtype] // 8
    if dtype == "BOOL":
        return bytes(place % 2 for place in range(size))
    # No byte of these is the sign and exponent of a NaN.
    return bytes(place * 7 % 61 for place in range(size))


def corpus():
    """The cases of the conformance corpus under the default limits: name, finding codes, content."""
    from recipe import build

    lines = (CORPUS / "expected.tsv").read_text(encoding="utf-8").splitlines()
    columns = lines[0].split("\t")
    for line in lines[1:]:
        row = dict(zip(columns, line.split("\t"), strict=True))
        if row["limits"] != "-":
            continue
        if row["recipe"] == "-":
            content = (CORPUS / "cases" / f"{row['case']}.safetensors").read_bytes()
        else:
            content = build(row["recipe"])
        codes = {word.rpartition("@")[0] for word in row["finding"].split()}
        yield row["case"], codes, content


def outcome(call, *arguments, **keywords):
    """What a call returns, or what it raises; a panic of Rust is no `Exception`."""
    try:
        return call(*arguments, **keywords), None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return None, error
