"""What is around the tensors: the same names as by keys and places, from the state dict on."""

import pytest
import safetensors.torch
import torch

import containers
import structures
from program import Refusal, read, same
from state import expected, leaves

every_way = pytest.mark.parametrize("way", containers.WAYS, ids=containers.way_id)
every_object_way = pytest.mark.parametrize("way", containers.OBJECT_WAYS, ids=containers.way_id)
every_structure = pytest.mark.parametrize("make", structures.STRUCTURES.values(), ids=structures.STRUCTURES)
every_module = pytest.mark.parametrize("make", structures.MODULES.values(), ids=structures.MODULES)


@every_way
@every_structure
def test_names_and_tensors_are_those_of_the_state_dict(weigh, tmp_path, make, way):
    path = containers.save(make(), tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(torch.load(path, weights_only=False)))


@every_structure
def test_all_is_every_tensor_of_the_file(weigh, tmp_path, make):
    path = containers.save(make(), tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--all")
    same(found, expected(torch.load(path, weights_only=False), every=True))


@every_object_way
@pytest.mark.parametrize("make", structures.VALUES.values(), ids=structures.VALUES)
def test_with_values_of_known_classes_too(weigh, tmp_path, make, way):
    path = containers.save(make(), tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(torch.load(path, weights_only=False)))


@every_object_way
@every_module
def test_a_module_is_its_state_dict_where_calls_are_allowed(weigh, tmp_path, make, way):
    path = containers.save(make(), tmp_path / "a.pt", way)
    assert isinstance(weigh.convert(path, tmp_path / "a.safetensors"), Refusal)
    found = weigh.convert(path, tmp_path / "a.safetensors", "--allow-calls")
    same(found, expected(torch.load(path, weights_only=False), modules=True))


@pytest.mark.parametrize(
    ("key", "inside"),
    [
        ("optimizer", lambda root: root["optimizer"]),
        ("model", lambda root: root["model"]),
        ("optimizer.state", lambda root: root["optimizer"]["state"]),
        ("optimizer.state.0", lambda root: root["optimizer"]["state"][0]),
        ("rng_state", lambda root: root["rng_state"]),
    ],
)
def test_names_begin_where_they_are_asked_to(weigh, tmp_path, key, inside):
    path = containers.save(structures.training_loop(), tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--key", key)
    same(found, expected(inside(torch.load(path, weights_only=True)), every=True))


@pytest.mark.parametrize("make", [lambda: {"epoch": 3, "names": ["a"]}, lambda: 3, lambda: [], lambda: {"model": {}}])
def test_without_a_tensor_there_is_nothing_to_convert(weigh, tmp_path, make):
    path = containers.save(make(), tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors")
    if make() == []:
        assert found == {}
    else:
        assert isinstance(found, Refusal) and "no-tensor" in found.text


def test_a_key_without_a_tensor_is_an_error(weigh, tmp_path):
    path = containers.save({"model": {"w": structures.counting(1)}, "epoch": 1, "none": {}}, tmp_path / "a.pt", ("zip", 2))
    for key, converted in [("model", True), ("none", True), ("epoch", False)]:
        found = weigh.convert(path, tmp_path / "a.safetensors", "--key", key)
        assert isinstance(found, dict) == converted, key


def test_a_key_that_is_not_there_is_an_error(weigh, tmp_path):
    path = containers.save(structures.training_loop(), tmp_path / "a.pt", ("zip", 2))
    for key in ("nothing", "model.nothing", "epoch.0", "model.", ".model"):
        found = weigh.convert(path, tmp_path / "a.safetensors", "--key", key)
        assert isinstance(found, Refusal), key


@every_way
@pytest.mark.parametrize("make", [structures.tied, structures.one_dictionary_by_two_names, structures.shared_storage])
def test_identical_views_are_written_once_where_asked(weigh, tmp_path, make, way):
    path = containers.save(make(), tmp_path / "a.pt", way)
    loaded = dict(leaves(torch.load(path, weights_only=False)))
    found, metadata = weigh.converted_with_metadata(path, tmp_path / "a.safetensors", "--dedupe")
    wanted = expected(loaded, every=True)
    aliases = {name: kept for name, kept in metadata.items() if name in wanted}
    assert set(found) | set(aliases) == set(wanted)
    assert not set(found) & set(aliases)
    same(found | {name: found[kept] for name, kept in aliases.items()}, wanted)
    assert aliases == identical(loaded)


def identical(tensors):
    """Of each group of names that are one view, all but the first, with that first."""
    groups = {}
    for name in sorted(tensors):
        tensor = tensors[name]
        view = (tensor.untyped_storage().data_ptr(), tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride())
        groups.setdefault(view, []).append(name)
    return {name: names[0] for names in groups.values() for name in names[1:]}


def test_what_is_written_once_is_what_safetensors_writes_once(weigh, tmp_path):
    """Of a model whose weights are tied, all of them whole, `save_model` keeps and drops the same names."""
    network = structures.module_with_tied_weights()
    safetensors.torch.save_model(network, str(tmp_path / "theirs.safetensors"))
    theirs, their_metadata = read(tmp_path / "theirs.safetensors")
    path = containers.save(network.state_dict(), tmp_path / "a.pt", ("zip", 2))
    ours, metadata = weigh.converted_with_metadata(path, tmp_path / "a.safetensors", "--dedupe")
    same(ours, theirs)
    for name, kept in their_metadata.items():
        if name != "format":
            assert metadata[name] == kept
