"""Compares what `weigh-format` encodes with the Python package `safetensors`."""

import ctypes
import math
import os
import subprocess

import pytest
from safetensors import TensorSpec, deserialize, safe_open, serialize

PACKAGE_DTYPES = {
    **dict.fromkeys(("bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    # Two elements a byte; the package doubles the last dimension.
    "float4_e2m1fn_x2": 1,
}

NAMES = ["", "w", "a.10", "a.2", 'quo"te\\', "\x00\x01\b\t\n\f\r\x1f\x7f/", "é 鍵 😀", "\u2028\ufeff"]

METADATA = [None, {"format": "pt"}, {'k"\x1f': "\b\f\x7f\u2029 é 😀"}, {"": ""}]


@pytest.fixture
def encode(tmp_path):
    program = os.environ.get("WEIGH_ENCODE_BIN")
    if not program:
        pytest.fail("WEIGH_ENCODE_BIN does not name the program; run `cargo xtask python`")

    def run(*arguments):
        path = tmp_path / "encoded.safetensors"
        subprocess.run([program, path, *arguments], check=True, timeout=60)
        return path

    return run


@pytest.fixture
def encoded(encode):
    return encode()


def test_the_package_reads_every_dtype_as_declared(encoded):
    entries = {name: entry for name, entry in deserialize(encoded.read_bytes())}
    assert len(entries) == 22
    for name, entry in entries.items():
        dtype = name.split('"')[1]
        assert (entry["dtype"], entry["shape"]) == (dtype, [3, 4])
        assert set(entry["data"]) == {0}


def test_the_package_reads_the_metadata(encoded):
    with safe_open(encoded, framework="np") as file:
        assert file.metadata() == {"format": "pt", "note": "tab\tand \U0001f600"}


def test_the_data_section_is_aligned(encoded):
    length = int.from_bytes(encoded.read_bytes()[:8], "little")
    assert (8 + length) % 64 == 0


def zeros(shapes):
    """Specifications of tensors of zeros for the package, and what keeps their bytes alive."""
    specs, kept = {}, []
    for name, (dtype, shape) in shapes.items():
        size = math.prod(shape) * PACKAGE_DTYPES[dtype]
        kept.append(ctypes.create_string_buffer(max(size, 1)))
        address = ctypes.addressof(kept[-1])
        specs[name] = TensorSpec(dtype=dtype, shape=shape, data_ptr=address, data_len=size)
    return specs, kept


SHAPES = {
    "nothing": {},
    "every dtype": {f"t{place}": (dtype, [2, 3]) for place, dtype in enumerate(PACKAGE_DTYPES)},
    "names": {name: ("float32", [1]) for name in NAMES},
    "sizes": {
        "scalar": ("float64", []),
        "empty": ("float32", [3, 0]),
        "z": ("uint8", [0]),
        "y": ("uint8", [1, 1, 1, 1, 1, 1, 1, 1, 1]),
        "packed": ("float4_e2m1fn_x2", [5, 3]),
        "one": ("bool", [1]),
    },
}


@pytest.mark.parametrize("metadata", METADATA, ids=repr)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_the_reference_layout_is_the_packages_byte_for_byte(encode, tmp_path, shapes, metadata):
    specs, _kept = zeros(shapes)
    theirs = tmp_path / "theirs.safetensors"
    theirs.write_bytes(serialize(specs, metadata))
    assert encode(theirs).read_bytes() == theirs.read_bytes()
