"""Onto a CUDA device all tensors of a file go while it is read, by a device that is only pretended."""

import pytest

from drop_in_files import content_of, file_of_tensors
from weigh import safetensors as ours

torch = pytest.importorskip("torch")
own = pytest.importorskip("weigh.safetensors.torch")

from test_devices import Pretended, raw  # noqa: E402

TENSORS = {
    "b": ("F32", [6, 5], content_of("F32", 30)),
    "a": ("BF16", [4], content_of("BF16", 4)),
    "scalar": ("I64", [], content_of("I64", 1)),
    "empty": ("F16", [0, 3], b""),
    "odd": ("U8", [3], b"abc"),
    "F4": ("F4", [3, 2], content_of("F4", 6)),
    "large": ("U8", [3 << 20], bytes(range(256)) * (3 << 12)),
}


@pytest.fixture
def device(monkeypatch):
    """A device that stands in for every CUDA device."""
    from weigh._frameworks import _cuda

    device = Pretended()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(_cuda, "Cuda", lambda given: device)
    return device


@pytest.fixture
def write_file(tmp_path):
    def write_file(tensors):
        path = tmp_path / "model.safetensors"
        path.write_bytes(file_of_tensors(tensors))
        return path

    return write_file


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("name", ["cuda", "cuda:0", 0])
def test_all_tensors_are_copied_from_pinned_memory_in_the_order_of_the_file(name, backend, device, write_file):
    read = own.load_file(write_file(TENSORS), device=name, backend=backend)
    assert list(read) == list(TENSORS)
    expected = own.load_file(write_file(TENSORS))
    for key, (_, _, content) in TENSORS.items():
        assert raw(read[key]) == content, key
        assert (read[key].dtype, read[key].shape) == (expected[key].dtype, expected[key].shape), key
    # The empty one has nothing to copy; the others were begun to be copied, and waited for at the end.
    assert device.is_finished and len(device.queue) >= len(TENSORS) - 1 and device.pinned


def test_a_file_without_tensors_has_nothing_to_copy(device, write_file):
    assert own.load_file(write_file({}), device="cuda") == {}
    assert not device.queue


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("F6_E2M3", [4], bytes(3)), "^Dtype not understood: F6_E2M3"),
        (("F4", [2, 3], bytes(3)), "^f4_x2 dtype requires that the last dim be divisible by 2"),
    ],
)
def test_what_torch_has_no_type_for_is_refused_before_anything_is_read(entry, words, device, write_file):
    path = write_file({"a": ("U8", [1], b"a"), "b": entry})
    with pytest.raises(ours.SafetensorError, match=words):
        own.load_file(path, device="cuda")
    assert not device.pinned


def test_a_closed_file_and_a_file_that_was_cut_off_raise_what_they_do_on_the_cpu(device, write_file):
    path = write_file({"large": TENSORS["large"]})
    with ours.safe_open(path, "pt", device="cuda", backend="pread") as file:
        with open(path, "r+b") as handle:
            handle.truncate(1000)
        with pytest.raises(OSError):
            file.get_tensors()
    assert device.is_finished
    with pytest.raises(ours.SafetensorError, match="^File is closed$"):
        file.get_tensors()


@pytest.mark.parametrize("place", ["cpu", None])
def test_the_cpu_has_no_part_in_it(place, device, write_file):
    read = own.load_file(write_file(TENSORS), device=place)
    assert list(read) == list(TENSORS)
    assert not device.is_finished and not device.pinned


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_a_real_device_gets_the_same(backend, write_file):
    path = write_file(TENSORS)
    read = own.load_file(path, device="cuda:0", backend=backend)
    assert list(read) == list(TENSORS)
    with ours.safe_open(path, "pt", device="cuda:0", backend=backend) as file:
        for key, (_, _, content) in TENSORS.items():
            assert read[key].device == file.get_tensor(key).device == torch.device("cuda:0")
            assert raw(read[key].cpu()) == raw(file.get_tensor(key).cpu()) == content
