"""What holds the writers of `cargo xtask bench write` to the right files is itself right."""

import hashlib
import json
import sys

import ml_dtypes
import numpy
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


@pytest.fixture(scope="module")
def source(root):
    """The benchmark's own module, which is no package."""
    sys.path.insert(0, str(root / "benches" / "write"))
    try:
        import source
    finally:
        sys.path.pop(0)
    return source


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return folder, source.make(folder, 1 / 1024)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("lower", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
@pytest.mark.parametrize("upper", [0x2000, 0x2001, 0x207F, 0x3FFF, 0xA000, 0xBFFF])
def test_bits_are_rounded_as_floats_are(source, upper, lower):
    bits = numpy.array([upper << 16 | lower], "<u4")
    want = bits.view("<f4").astype(ml_dtypes.bfloat16).view("<u2")
    assert source.upper_half(bits) == want


def test_the_description_is_of_what_is_there(source, made):
    folder, answer = made
    assert json.loads((folder / "source.json").read_text()) == answer
    assert digest(folder / "model.safetensors") == answer["source"]
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "shards", "source.json"]
    tensors = load_file(folder / "model.safetensors")
    assert sum(tensor.nbytes for tensor in tensors.values()) == answer["bytes"]
    index = json.loads((folder / "shards" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == answer["bytes"]
    assert index["weight_map"].keys() == tensors.keys()
    for file, want in answer["shards"].items():
        path = folder / "shards" / file
        assert digest(path) == want
        shard = load_file(path)
        assert sum(tensor.nbytes for tensor in shard.values()) == answer["shard_bytes"]
        for name, tensor in shard.items():
            assert index["weight_map"][name] == file
            assert numpy.array_equal(tensor, tensors[name])


def test_the_digests_are_of_what_is_to_be_made(source, made, tmp_path):
    folder, answer = made
    tensors = load_file(folder / "model.safetensors")
    path = tmp_path / "file"
    for what, wanted, metadata in [
        ("renamed", {name.replace("layers", "blocks"): it for name, it in tensors.items()}, None),
        ("noted", tensors, source.NOTE),
        ("cast", {name: it.astype(ml_dtypes.bfloat16) for name, it in tensors.items()}, None),
    ]:
        save_file(wanted, path, metadata=metadata)
        assert digest(path) == answer[what], what
    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        assert not file.metadata()


def test_the_same_every_time_and_finite(source, made, tmp_path):
    folder, answer = made
    assert source.make(tmp_path / "again", 1 / 1024) == answer
    for tensor in load_file(folder / "model.safetensors").values():
        sizes = numpy.abs(tensor)
        assert 2**-63 <= sizes.min() and sizes.max() < 2
