"""Reads what `weigh-format` encodes with the Python package `safetensors`."""

import os
import subprocess

import pytest
from safetensors import deserialize, safe_open


@pytest.fixture
def encoded(tmp_path):
    program = os.environ.get("WEIGH_ENCODE_BIN")
    if not program:
        pytest.fail("WEIGH_ENCODE_BIN does not name the program; run `cargo xtask python`")
    path = tmp_path / "encoded.safetensors"
    subprocess.run([program, path], check=True, timeout=60)
    return path


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
