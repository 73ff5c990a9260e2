"""Archives of numpy, in and out, and the index of several checkpoints."""

import json

import numpy
import pytest
import torch

import containers
import elements
import structures
from program import Refusal, read, same
from state import expected, stored

ARRAYS = {name: value for name, value in structures.numpy_arrays().items() if isinstance(value, numpy.ndarray)}


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_an_archive_of_arrays_is_converted(weigh, tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    same(weigh.convert(tmp_path / "a.npz", tmp_path / "a.safetensors"), {name: stored(array) for name, array in ARRAYS.items()})


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_alone_is_converted(weigh, tmp_path, name):
    numpy.save(tmp_path / "a.npy", ARRAYS[name])
    found = weigh.convert(tmp_path / "a.npy", tmp_path / "a.safetensors")
    assert not isinstance(found, Refusal), found
    assert list(found.values()) == [stored(ARRAYS[name])]


@pytest.mark.parametrize("array", [numpy.array(["a"]), numpy.array([{}], dtype=object), numpy.zeros(2, "f4,i4")], ids=str)
def test_an_array_of_what_safetensors_has_not_is_refused(weigh, tmp_path, array):
    numpy.savez(tmp_path / "a.npz", a=array, w=numpy.ones(2))
    assert isinstance(weigh.convert(tmp_path / "a.npz", tmp_path / "a.safetensors", "--all"), Refusal)
    # Fields may be numbers; text and objects are none, and no tensor.
    found = weigh.convert(tmp_path / "a.npz", tmp_path / "a.safetensors")
    assert isinstance(found, Refusal) if array.dtype.names else list(found) == ["w"]
    numpy.save(tmp_path / "a.npy", array)
    assert isinstance(weigh.convert(tmp_path / "a.npy", tmp_path / "a.safetensors"), Refusal)


NUMPY = [name for name in elements.PLAIN if hasattr(numpy, name) or name == "bool"]


@pytest.mark.parametrize("dtype", NUMPY)
def test_numpy_loads_what_is_written_for_it(weigh, tmp_path, dtype):
    value = elements.views(dtype) | (elements.lazy(dtype) if dtype in elements.NEGATABLE else {})
    path = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    ended = weigh.run("convert", path, "-o", tmp_path / "a.npz")
    assert ended.returncode == 0, ended.stderr
    with numpy.load(tmp_path / "a.npz", allow_pickle=False) as loaded:
        found = {name: stored(loaded[name]) for name in loaded.files}
    same(found, expected(value, every=True))


@pytest.mark.parametrize("dtype", [name for name in elements.PLAIN if name not in NUMPY])
def test_what_numpy_has_not_is_refused(weigh, tmp_path, dtype):
    path = containers.save({"odd": elements.any_bits(dtype)}, tmp_path / "a.pt", ("zip", 2))
    ended = weigh.run("convert", path, "-o", tmp_path / "a.npz")
    assert ended.returncode == 1 and "odd" in ended.stderr
    assert not (tmp_path / "a.npz").exists()


def test_safetensors_to_arrays_and_back(weigh, tmp_path):
    numpy.savez(tmp_path / "a.npz", **ARRAYS)
    same(weigh.convert(tmp_path / "a.npz", tmp_path / "a.safetensors"), {name: stored(array) for name, array in ARRAYS.items()})
    assert weigh.run("convert", tmp_path / "a.safetensors", "-o", tmp_path / "b.npz").returncode == 0
    with numpy.load(tmp_path / "b.npz", allow_pickle=False) as loaded:
        same({name: stored(loaded[name]) for name in loaded.files}, {name: stored(array) for name, array in ARRAYS.items()})


@pytest.mark.parametrize("way", containers.WAYS, ids=containers.way_id)
def test_the_index_of_several_checkpoints_is_one(weigh, tmp_path, way):
    state = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 4)).state_dict()
    folder = tmp_path / "model"
    folder.mkdir()
    files = {"pytorch_model-00001-of-00002.bin": "0.", "pytorch_model-00002-of-00002.bin": "1."}
    weight_map = {}
    for file, prefix in files.items():
        shard = {name: tensor for name, tensor in state.items() if name.startswith(prefix)}
        containers.save(shard, folder / file, way)
        weight_map |= dict.fromkeys(shard, file)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}))
    for source in (index, folder):
        same(weigh.convert(source, tmp_path / "out.safetensors"), expected(state, every=True))
    ended = weigh.run("convert", index, "-o", tmp_path / "sharded")
    assert ended.returncode == 0, ended.stderr
    shards = {}
    for path in (tmp_path / "sharded").glob("*.safetensors"):
        shards |= read(path)[0]
    same(shards, expected(state, every=True))
