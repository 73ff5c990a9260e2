"""The package as it lies in the repository, with the native module built beside it, unless a wheel is installed."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "bindings" / "python" / "python"

if not os.environ.get("WEIGH_WHEEL"):
    sys.path.insert(0, str(SOURCES))


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
