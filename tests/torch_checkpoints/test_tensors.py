"""Every dtype and every view of it, as each way of saving writes it: the same elements as torch has."""

import pytest
import torch

import containers
import elements
from program import same
from state import Stored, elements_of, expected

every_way = pytest.mark.parametrize("way", containers.WAYS, ids=containers.way_id)


def reloaded(value, path, way, dtype):
    """What torch has of a file. Of those that it writes and cannot read, what was saved."""
    if way[0] == "legacy" and dtype in elements.UNTYPED:
        with pytest.raises(AttributeError, match="UntypedStorage"):
            torch.load(path, weights_only=False)
        return value
    return torch.load(path, weights_only=False)


@every_way
@pytest.mark.parametrize("dtype", elements.PLAIN)
def test_views_have_the_elements_that_torch_has(weigh, tmp_path, dtype, way):
    value = elements.views(dtype)
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(reloaded(value, path, way, dtype)))


@every_way
@pytest.mark.parametrize("dtype", elements.NEGATABLE)
def test_negation_and_conjugation_that_torch_put_off_are_done(weigh, tmp_path, dtype, way):
    value = elements.lazy(dtype)
    assert any(tensor.is_neg() or tensor.is_conj() for tensor in value.values())
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(torch.load(path, weights_only=False)))


@every_way
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_imaginary_parts_of_conjugated_numbers_are_negated(weigh, tmp_path, dtype, way):
    value = elements.parts_of(dtype)
    assert value["imaginary"].is_neg()
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(torch.load(path, weights_only=False)))


@every_way
def test_booleans_of_other_bytes_are_0_or_1(weigh, tmp_path, way):
    raw = torch.tensor([0, 1, 2, 128, 255, 0], dtype=torch.uint8)
    value = {"all": raw.view(torch.bool), "some": raw.clone().view(torch.bool)[::2]}
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, {"all": Stored("BOOL", (6,), bytes([0, 1, 1, 1, 1, 0])), "some": Stored("BOOL", (3,), bytes([0, 1, 1]))})


@every_way
@pytest.mark.parametrize("dtype", elements.PLAIN)
def test_one_tensor_is_the_whole_file(weigh, tmp_path, dtype, way):
    value = elements.any_bits(dtype, 7)[2:]
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors")
    same(found, expected(value))


COMPONENTS = {"complex128": "F64", "complex32": "F16", "bcomplex32": "BF16"}


@every_way
@pytest.mark.parametrize("dtype", COMPONENTS)
def test_complex_numbers_that_safetensors_has_not_become_two_where_asked(weigh, tmp_path, dtype, way):
    value = {what: tensor for what, tensor in elements.views(dtype).items() if what != "large"}
    if dtype != "bcomplex32":
        value |= {what: tensor for what, tensor in elements.lazy(dtype).items() if tensor.is_complex()}
    path = containers.save(value, tmp_path / "a.pt", way)
    found = weigh.convert(path, tmp_path / "a.safetensors", "--complex", "view-real")
    wanted = {
        name: Stored(COMPONENTS[dtype], (*tensor.shape, 2), elements_of(tensor)) for name, tensor in value.items()
    }
    same(found, wanted)
