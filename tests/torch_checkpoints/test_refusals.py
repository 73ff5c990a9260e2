"""What is refused, and by which word; and what becomes of it where a rule was chosen."""

import numpy
import pytest

import containers
import refusals
from program import Refusal, same
from state import stored
from structures import counting

every_way = pytest.mark.parametrize("way", containers.FEW_WAYS, ids=containers.way_id)


def refusal(weigh, path, *options):
    found = weigh.convert(path, path.parent / "out.safetensors", *options)
    assert isinstance(found, Refusal), f"converted: {found}"
    return found


@every_way
@pytest.mark.parametrize(("make", "word"), refusals.TENSORS.values(), ids=refusals.TENSORS)
def test_a_tensor_is_refused_by_name(weigh, tmp_path, make, word, way):
    path = containers.save({"fine": counting(1), "inner": {"odd": make()}}, tmp_path / "a.pt", way)
    found = refusal(weigh, path)
    assert found.code == 1
    assert word in found.text and "inner.odd" in found.text, found.text


@every_way
@pytest.mark.parametrize(("make", "word"), refusals.TENSORS.values(), ids=refusals.TENSORS)
def test_the_others_are_converted_where_that_is_asked(weigh, tmp_path, make, word, way):
    path = containers.save({"fine": counting(1), "inner": {"odd": make()}}, tmp_path / "a.pt", way)
    same(weigh.convert(path, tmp_path / "a.safetensors", "--partial"), {"fine": stored(counting(1))})


@every_way
@pytest.mark.parametrize(("make", "word"), refusals.NO_NUMBERS.values(), ids=refusals.NO_NUMBERS)
def test_an_array_of_no_numbers_is_left_out_unless_all_are_wanted(weigh, tmp_path, make, word, way):
    path = containers.save({"inner": {"fine": counting(1), "odd": make()}}, tmp_path / "a.pt", way)
    same(weigh.convert(path, tmp_path / "a.safetensors"), {"inner.fine": stored(counting(1))})
    assert word in refusal(weigh, path, "--all").text
    assert "state-no-tensor" in refusal(weigh, path, "--key", "inner.odd").text


def test_tensors_in_an_array_of_objects_are_never_left_out_in_silence(weigh, tmp_path):
    array = numpy.empty(2, dtype=object)
    array[0], array[1] = counting(1), counting(2)
    path = containers.save({"fine": counting(1), "odd": array}, tmp_path / "a.pt", ("zip", 2))
    assert "state-opaque" in refusal(weigh, path).text


@every_way
@pytest.mark.parametrize(("make", "word"), refusals.NAMES.values(), ids=refusals.NAMES)
def test_a_checkpoint_without_unique_names_is_refused(weigh, tmp_path, make, word, way):
    found = refusal(weigh, containers.save(make(), tmp_path / "a.pt", way))
    assert found.code == 1
    assert word in found.text, found.text


@every_way
@pytest.mark.parametrize("make", [*refusals.CALLS.values(), *refusals.GLOBALS.values()],
                         ids=[*refusals.CALLS, *refusals.GLOBALS])  # fmt: skip
def test_a_checkpoint_that_is_not_only_data_is_refused(weigh, tmp_path, make, way):
    assert refusal(weigh, containers.save(make(), tmp_path / "a.pt", way)).code == 1


@pytest.mark.parametrize("name", ["own_class", "function", "class", "partial"])
def test_its_other_tensors_are_converted_where_calls_are_allowed(weigh, tmp_path, name):
    make = (refusals.CALLS | refusals.GLOBALS)[name]
    path = containers.save(make(), tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--allow-calls", "--partial")
    same(found, {"w": stored(counting(1))})


def test_a_tensor_inside_of_what_has_no_meaning_is_never_left_out_in_silence(weigh, tmp_path):
    for name in ("own_class", "named_tuple"):
        path = containers.save(refusals.CALLS[name](), tmp_path / f"{name}.pt", ("zip", 2))
        assert "state-opaque" in refusal(weigh, path, "--allow-calls").text
