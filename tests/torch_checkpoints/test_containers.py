"""Honest archives that torch itself does not write: others do."""

import pytest
import torch

import containers
import elements
import payloads
import structures
from program import same
from state import Stored, elements_of, expected, stored


@pytest.mark.parametrize("protocol", containers.PROTOCOLS)
@pytest.mark.parametrize("dtype", elements.PLAIN)
def test_numbers_of_a_big_endian_machine_are_turned(weigh, tmp_path, dtype, protocol):
    # What torch.load has of these is not always what was saved: see test_oracle.py.
    value = elements.views(dtype)
    plain = containers.save(value, tmp_path / "a.pt", ("zip", protocol))
    big = containers.big_endian(plain, tmp_path / "b.pt", elements.number_bytes(dtype))
    same(weigh.convert(big, tmp_path / "b.safetensors"), expected(value, every=True))


@pytest.mark.parametrize("dtype", elements.NEGATABLE)
def test_and_negated_and_conjugated(weigh, tmp_path, dtype):
    value = elements.lazy(dtype)
    plain = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    big = containers.big_endian(plain, tmp_path / "b.pt", elements.number_bytes(dtype))
    same(weigh.convert(big, tmp_path / "b.safetensors"), expected(value, every=True))


@pytest.mark.parametrize("dtype", elements.PLAIN)
def test_deflated_members_are_inflated(weigh, tmp_path, dtype):
    plain = containers.save(elements.views(dtype), tmp_path / "a.pt", ("zip", 2))
    deflated = containers.deflate(plain, tmp_path / "b.pt")
    found = weigh.convert(deflated, tmp_path / "b.safetensors")
    same(found, expected(torch.load(deflated, weights_only=True), every=True))


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_deflated_numbers_of_a_big_endian_machine(weigh, tmp_path, dtype):
    value = elements.views(dtype)
    plain = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    big = containers.big_endian(plain, tmp_path / "b.pt", elements.number_bytes(dtype))
    deflated = containers.deflate(big, tmp_path / "c.pt")
    same(weigh.convert(deflated, tmp_path / "c.safetensors"), expected(value, every=True))


def test_a_checkpoint_that_does_not_say_its_byte_order_is_little_endian(weigh, tmp_path):
    plain = containers.save(structures.lightning(), tmp_path / "a.pt", ("zip", 2))
    old = containers.without_byte_order(plain, tmp_path / "b.pt")
    same(weigh.convert(old, tmp_path / "b.safetensors"), expected(torch.load(old, weights_only=True)))


@pytest.mark.parametrize("protocol", containers.PROTOCOLS)
@pytest.mark.parametrize("name", ["state_dict_of_a_module", "lightning", "many_tensors", "shared_storage"])
def test_checkpoints_without_checksums_are_as_good(weigh, tmp_path, name, protocol):
    path = containers.save_without_checksums(structures.STRUCTURES[name](), tmp_path / "a.pt", protocol)
    same(weigh.convert(path, tmp_path / "a.safetensors"), expected(torch.load(path, weights_only=False)))


@pytest.mark.parametrize("alignment", [1, 8, 64, 4096, 1 << 16])
def test_members_are_where_their_headers_say_whatever_the_alignment(weigh, tmp_path, alignment):
    before = torch.utils.serialization.config.save.storage_alignment
    torch.utils.serialization.config.save.storage_alignment = alignment
    try:
        path = containers.save(structures.lightning(), tmp_path / "a.pt", ("zip", 2))
    finally:
        torch.utils.serialization.config.save.storage_alignment = before
    same(weigh.convert(path, tmp_path / "a.safetensors"), expected(torch.load(path, weights_only=True)))


@pytest.mark.parametrize("way", containers.WAYS, ids=containers.way_id)
@pytest.mark.parametrize("suffix", [".pt", ".bin", ".safetensors", ".ckpt", ".zip", ".npz", ""])
def test_a_file_is_what_its_bytes_are_not_its_name(weigh, tmp_path, suffix, way):
    path = containers.save(structures.nested(), tmp_path / f"a{suffix}", way)
    same(weigh.convert(path, tmp_path / "out.safetensors"), expected(structures.nested()))


def test_complex_numbers_of_a_big_endian_machine_by_the_rule_of_the_user(weigh, tmp_path):
    numbers = elements.lazy("complex128")
    plain = containers.save(numbers, tmp_path / "c.pt", ("zip", 2))
    big = containers.big_endian(plain, tmp_path / "d.pt", 8)
    found = weigh.convert(big, tmp_path / "d.safetensors", "--complex", "view-real")
    same(found, {name: Stored("F64", (*tensor.shape, 2), elements_of(tensor)) for name, tensor in numbers.items()})


@pytest.mark.parametrize("place", ["cuda:0", "mps", "xpu:3", "meta_"])
def test_where_a_storage_was_is_of_no_account(weigh, tmp_path, place):
    plain = containers.save(structures.tied(), tmp_path / "a.pt", ("zip", 2))
    moved = containers.change_pickle(
        plain, tmp_path / "b.pt", lambda pickle: pickle.replace(payloads.text("cpu"), payloads.text(place))
    )
    assert moved.read_bytes() != plain.read_bytes()
    same(weigh.convert(moved, tmp_path / "b.safetensors"), expected(torch.load(moved, map_location="cpu", weights_only=True)))


def test_an_archive_of_the_first_version_has_fewer_members(weigh, tmp_path):
    later = (".format_version", ".storage_alignment", "byteorder", ".data/serialization_id")
    plain = containers.save(structures.lightning(), tmp_path / "a.pt", ("zip", 2))
    old = containers.rewrite(plain, tmp_path / "b.pt", lambda name, content: None if name in later else content)
    same(weigh.convert(old, tmp_path / "b.safetensors"), expected(torch.load(old, weights_only=True)))


def test_more_members_than_the_first_zip_archives_could_have(weigh, tmp_path):
    count = 66_000
    row = torch.arange(count, dtype=torch.int32)
    value = {f"{number}": row[number].clone() for number in range(count)}
    path = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors")
    assert len(found) == count
    assert all(found[f"{number}"] == Stored("I32", (), number.to_bytes(4, "little")) for number in range(count))


def test_storages_that_were_reserved_and_not_checked_are_converted_where_asked(weigh, tmp_path):
    """`skip_data` reserves the bytes, which the program writes itself: the checksums are of nothing."""
    value = {"w": structures.counting(20)}
    path = tmp_path / "a.pt"
    with torch.serialization.skip_data():
        torch.save(value, path)
    content = bytearray(path.read_bytes())
    offset = torch._C.PyTorchFileReader(str(path)).get_record_offset("data/0")
    content[offset : offset + 80] = stored(value["w"]).data
    path.write_bytes(content)
    same(expected(torch.load(path, weights_only=True)), expected(value))
    assert "skipped-data" in weigh.convert(path, tmp_path / "a.safetensors").text
    same(weigh.convert(path, tmp_path / "a.safetensors", "--ignore-crc"), expected(value))
