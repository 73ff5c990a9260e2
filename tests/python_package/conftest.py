"""The package as it lies in the repository, with the native module built beside it, unless a wheel is installed."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "bindings" / "python" / "python"

if not os.environ.get("WEIGH_WHEEL"):
    sys.path.insert(0, str(SOURCES))
    # For the processes that tests start.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def environment():
    """The environment of a process that is to import the same package."""
    made = dict(os.environ)
    if not os.environ.get("WEIGH_WHEEL"):
        made["PYTHONPATH"] = str(SOURCES)
    return made


def encode(tensors, metadata=None):
    """A file's content, made by hand of names and ``(dtype, shape, bytes)``: what no code under test has seen."""
    import json

    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def write(tmp_path):
    """Writes such a file, and says where."""

    def write(tensors, metadata=None, name="model.safetensors"):
        path = tmp_path / name
        path.write_bytes(encode(tensors, metadata))
        return path

    return write


#: Bits of an element of every dtype of the format.
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip

#: The number 1 in the bytes of every dtype; of those under 8 bits, a byte or three of ones.
ONE = {
    "BOOL": b"\x01", "U8": b"\x01", "I8": b"\x01", "U16": b"\x01\0", "I16": b"\x01\0", "U32": b"\x01\0\0\0",
    "I32": b"\x01\0\0\0", "U64": b"\x01" + bytes(7), "I64": b"\x01" + bytes(7),
    "F16": b"\0\x3c", "BF16": b"\x80\x3f", "F32": b"\0\0\x80\x3f", "F64": bytes(6) + b"\xf0\x3f",
    "C64": b"\0\0\x80\x3f\0\0\0\0",
    "F8_E4M3": b"\x38", "F8_E5M2": b"\x3c", "F8_E8M0": b"\x7f", "F8_E4M3FNUZ": b"\x40", "F8_E5M2FNUZ": b"\x40",
    "F6_E2M3": b"\x08\x82\x20", "F6_E3M2": b"\x0c\xc3\x30", "F4": b"\x22",
}  # fmt: skip


def content(dtype, elements):
    """Some bytes for so many elements: any that are, for every dtype but ``BOOL``, a value."""
    count = BITS[dtype] * elements // 8
    if dtype == "BOOL":
        return bytes(place % 3 % 2 for place in range(count))
    return bytes((place * 37 + 11) % 251 for place in range(count))


@pytest.fixture
def everything(write):
    """A file with each dtype in several shapes: what is in it, and where it is.

    Names are ``DTYPE.whole`` (2 × 4), ``.empty`` (0 × 4), ``.ones`` (as few as there can be, one dimension) and, of
    those with whole bytes, ``.scalar``.
    """
    tensors = {}
    for dtype, bits in BITS.items():
        tensors[f"{dtype}.whole"] = (dtype, (2, 4), content(dtype, 8))
        tensors[f"{dtype}.empty"] = (dtype, (0, 4), b"")
        tensors[f"{dtype}.ones"] = (dtype, (len(ONE[dtype]) * 8 // bits,), ONE[dtype])
        if bits >= 8:
            tensors[f"{dtype}.scalar"] = (dtype, (), ONE[dtype])
    return tensors, write(tensors, name="everything.safetensors")


@pytest.fixture
def reread():
    """What of ``(dtype, shape, bytes)`` is in a file, read without any code under test."""

    def reread(content):
        import json

        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        header.pop("__metadata__", None)
        found = {}
        for name, value in header.items():
            first, end = value["data_offsets"]
            found[name] = (value["dtype"], tuple(value["shape"]), bytes(content[start + first : start + end]))
        return found

    return reread
