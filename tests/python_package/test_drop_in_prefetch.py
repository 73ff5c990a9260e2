"""`safe_open.prefetch`: tensors loaded in the background, handed out once each."""

import gc
import threading
import time
import weakref

import pytest

from drop_in_files import content_of, file_of_tensors
from weigh import safetensors as ours

torch = pytest.importorskip("torch")


@pytest.fixture(params=["mmap", "pread"])
def file(request, tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        "b": ("F32", [6, 5], content_of("F32", 30)),
        "a": ("BF16", [4], content_of("BF16", 4)),
        "scalar": ("I64", [], content_of("I64", 1)),
        "empty": ("F16", [0, 3], b""),
        "F4": ("F4", [3, 2], content_of("F4", 6)),
        "half": ("F4", [2, 1], content_of("F4", 2)),
    }
    path.write_bytes(file_of_tensors(tensors))
    return ours.safe_open(path, "pt", backend=request.param)


NAMES = ["b", "a", "scalar", "empty", "F4"]


def plan(*names):
    return dict.fromkeys(names)


def test_each_tensor_is_handed_out_once_and_is_what_get_tensor_gives(file):
    with file.prefetch(plan(*NAMES)) as loader:
        assert type(loader) is ours.PrefetchLoader
        assert (loader.names(), len(loader)) == (NAMES, 5)
        first = loader.take("a")
        rest = dict(loader)
        assert sorted(rest) == sorted(set(NAMES) - {"a"})
        for name, tensor in (rest | {"a": first}).items():
            expected = file.get_tensor(name)
            assert (tensor.dtype, tensor.shape, tensor.device) == (expected.dtype, expected.shape, expected.device)
            assert torch.equal(*(it.reshape(-1).view(torch.uint8) for it in (tensor, expected)))
        assert list(loader) == []
        for name in NAMES:
            with pytest.raises(ours.SafetensorError, match="already delivered"):
                loader.take(name)


def test_a_plan_takes_rows(file):
    whole = file.get_tensor("b")
    for rows in (slice(1, 3), slice(None), slice(-2, None), slice(6, None), slice(4, 2), slice(0, 6, 1)):
        loader = file.prefetch({"b": rows})
        assert torch.equal(loader.take("b"), whole[rows])


#: Plans that are refused, and in which words.
REFUSED = [
    ({"b": slice(None, None, 2)}, "must have step 1, got 2"),
    ({"b": slice(None, None, -1)}, "must have step 1, got -1"),
    ({"b": slice(None, None, 0)}, "invalid prefetch plan slice"),
    ({"b": slice(0, 7)}, "slice stop 7 for b is out of range for 6 rows"),
    ({"b": slice(-7, None)}, "slice start -7 for b is out of range"),
    ({"b": slice("a", None)}, "must be integers or None"),
    ({"b": 3}, "must be None or a slice"),
    ({"scalar": slice(None)}, "cannot slice rows of the 0-d tensor scalar"),
    ({"half": slice(0, 1)}, "a row is not a whole number of bytes"),
    ({"nope": None}, "File does not contain tensor nope"),
    ({1: None}, "keys must be tensor names"),
    ({}, "selects no tensors"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=str)
def test_a_plan_that_cannot_be_meant_is_refused(given, words, file):
    with pytest.raises(ours.SafetensorError, match=words):
        file.prefetch(given)


def test_only_torch_prefetches_and_not_what_it_has_no_type_for(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of_tensors({"a": ("F6_E2M3", [4], bytes(3)), "b": ("U8", [1], b"b")}))
    with pytest.raises(ours.SafetensorError, match='only compatible with framework="pt"'):
        ours.safe_open(path, "np").prefetch()
    with pytest.raises(ours.SafetensorError, match="cannot hand out dtype F6_E2M3"):
        ours.safe_open(path, "pt").prefetch()
    assert ours.safe_open(path, "pt").prefetch(plan("b")).take("b").tolist() == [98]


def test_a_name_that_is_not_in_the_plan_is_refused(file):
    with pytest.raises(ours.SafetensorError, match="tensor a is not in the prefetch plan"):
        file.prefetch(plan("b")).take("a")


def test_a_loader_that_is_closed_gives_nothing_more_and_takes_nothing_back(file):
    loader = file.prefetch(plan(*NAMES))
    taken = loader.take("b")
    loader.close()
    loader.close()
    with pytest.raises(ours.SafetensorError, match="closed"):
        loader.take("a")
    assert torch.equal(taken, file.get_tensor("b"))


def test_a_loader_outlives_the_file_object_and_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of_tensors({"a": ("U8", [3], b"abc")}))
    with ours.safe_open(path, "pt") as opened:
        loader = opened.prefetch()
    path.unlink()
    assert loader.take("a").tolist() == [97, 98, 99]


def test_what_waits_hears_what_went_wrong(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of_tensors({"a": ("U8", [3], b"abc"), "b": ("U8", [3], b"abc")}))
    opened = ours.safe_open(path, "pt", backend="pread")
    with open(path, "r+b") as handle:
        handle.truncate(20)
    loader = opened.prefetch()
    for _ in range(2):
        with pytest.raises(OSError):
            loader.take("a")
    with pytest.raises(OSError):
        list(loader)


def test_many_tensors_come_through_several_threads_whole(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {f"t{number}": ("I32", [50_000], number.to_bytes(4, "little") * 50_000) for number in range(400)}
    path.write_bytes(file_of_tensors(tensors))
    with ours.safe_open(path, "pt") as opened, opened.prefetch(threads=4) as loader:
        taken = [loader.take("t399")]
        taken += [tensor for _, tensor in loader]
    assert sorted(int(tensor[0]) for tensor in taken) == list(range(400))
    assert all(bool((tensor == tensor[0]).all()) for tensor in taken)


def test_threads_that_share_a_loader_get_each_tensor_once(file):
    loader, got = file.prefetch(plan(*NAMES)), []
    threads = [threading.Thread(target=lambda: got.extend(name for name, _ in loader)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(NAMES)


def test_a_loader_that_nobody_has_is_let_go_of(file):
    loader = file.prefetch(plan(*NAMES))
    loader.take("b")
    gone = weakref.ref(loader)
    del loader
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.02)
    assert gone() is None


def test_loaders_are_only_made_by_prefetch():
    with pytest.raises(TypeError):
        ours.PrefetchLoader()
