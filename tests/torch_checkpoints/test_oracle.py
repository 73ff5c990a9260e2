"""That what the program is measured by is what safetensors writes of the same tensors, and what torch reads."""

import pytest
import safetensors.torch
import torch

import containers
import elements
import structures
from program import read, same
from state import expected, raw_integers


def compact(tensor):
    """The tensor in a storage of its own. There is no copying of some dtypes, but of integers as large."""
    if tensor.dtype.is_complex or tensor.dtype == torch.bool:
        return tensor.contiguous().clone()
    return raw_integers(tensor).contiguous().clone().view(tensor.dtype)


@pytest.mark.parametrize("name", elements.PLAIN)
def test_it_is_what_safetensors_writes(name, tmp_path):
    tensors = {what: compact(tensor) for what, tensor in elements.views(name).items()}
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file(tensors, path)
    same(read(path)[0], expected(elements.views(name), every=True))


@pytest.mark.parametrize("name", [*elements.NEGATABLE])
def test_it_is_what_safetensors_writes_of_what_is_still_to_be_negated(name, tmp_path):
    tensors = {what: tensor.resolve_conj().resolve_neg().contiguous().clone() for what, tensor in elements.lazy(name).items()}
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file(tensors, path)
    same(read(path)[0], expected(elements.lazy(name), every=True))


@pytest.mark.parametrize("make", structures.STRUCTURES.values(), ids=structures.STRUCTURES)
def test_torch_reads_what_it_saved(make, tmp_path):
    value = make()
    path = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    same(expected(torch.load(path, weights_only=False)), expected(value))


@pytest.mark.parametrize("name", elements.PLAIN)
def test_a_big_endian_checkpoint_is_one_for_torch_too(name, tmp_path):
    value = elements.views(name)
    plain = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    big = containers.big_endian(plain, tmp_path / "b.pt", elements.number_bytes(name))
    if name in elements.UNTYPED and elements.number_bytes(name) > 1:
        # Torch does not swap what it keeps as bytes: it has other numbers than the machine that saved them.
        loaded = torch.load(big, weights_only=True)
        assert expected(loaded, every=True) != expected(value, every=True)
        return
    same(expected(torch.load(big, weights_only=True), every=True), expected(value, every=True))
