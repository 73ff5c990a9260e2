"""Copying to a device while reading, by a device that is only pretended: it copies when it has to be waited for.

What a real one does is in `weigh._frameworks._cuda.Cuda`, and runs where there is one.
"""

import pytest

import weigh

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from weigh._frameworks import _cuda  # noqa: E402

MISSING = ("F6_E2M3", "F6_E3M2")


class Pretended:
    """A device whose copies are done late: when an event is waited for, or at the end.

    So bytes that are put into a buffer too early end up in the wrong tensor.
    """

    def __init__(self, fault=None):
        self.queue = []
        self.done = 0
        self.pinned = []
        self.waits = 0
        self.is_finished = False
        self.fault = fault

    def allocate(self, nbytes):
        return torch.full((nbytes,), 0xEE, dtype=torch.uint8)

    def pin(self, nbytes):
        self.pinned.append(torch.full((nbytes,), 0xDD, dtype=torch.uint8))
        return self.pinned[-1]

    def copy(self, destination, source):
        if self.fault is not None and len(self.queue) >= 3:
            raise self.fault
        assert destination.numel() == source.numel() > 0
        assert any(source.untyped_storage().data_ptr() == pinned.data_ptr() for pinned in self.pinned)
        self.queue.append((destination, source))

    def event(self):
        device, at = self, len(self.queue)

        class Event:
            def synchronize(self):
                device.waits += 1
                device.do(at)

        return Event()

    def finish(self):
        self.do(len(self.queue))
        self.is_finished = True

    def do(self, until):
        for destination, source in self.queue[self.done : until]:
            destination.copy_(source)
        self.done = max(self.done, until)


def raw(tensor):
    return b"" if tensor.numel() == 0 else bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def load(path, device, wants=None, **options):
    given = {name: options.pop(name) for name in ("floats", "progress") if name in options}
    checkpoint = weigh.open(path)
    wants = [(name, None) for name in checkpoint] if wants is None else wants
    return _cuda.Loader(device, **options).load(checkpoint._native, wants, **given)


@pytest.mark.parametrize("stage", [1, 64, 100, 4096, 32 << 20])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_every_dtype_arrives_whatever_the_size_of_the_buffers(everything, stage, stages):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    device = Pretended()
    loaded = load(path, device, [(name, None) for name in known], stage=stage, stages=stages)
    assert list(loaded) == list(known)
    same = weigh.load(path, list(known), framework="torch")
    for name, (_, _, content) in known.items():
        assert raw(loaded[name]) == content, name
        assert loaded[name].dtype == same[name].dtype and loaded[name].shape == same[name].shape, name
    assert device.is_finished and len(device.pinned) <= stages


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("devices") / "x"
    generator = numpy.random.default_rng(0)
    sizes = [3, 1 << 20, 700_000, 0, 1, 5 << 20, 999]
    weigh.save({f"w{number}": generator.integers(0, 255, size, "u1") for number, size in enumerate(sizes)}, path)
    return path


def test_a_buffer_is_filled_again_only_after_its_event(large):
    device = Pretended()
    loaded = load(large, device, stage=64 << 10, stages=3)
    want = weigh.load(large, framework="torch")
    assert all(torch.equal(loaded[name], want[name]) for name in want)
    assert len(device.pinned) == 3
    # All but those of the last round were waited for.
    assert device.waits >= sum(tensor.numel() for tensor in want.values()) // (64 << 10) - 3


def test_tensors_larger_than_what_is_read_ahead_arrive(large):
    loaded = load(large, Pretended(), stage=256 << 10, budget=1 << 20)
    want = weigh.load(large, framework="torch")
    assert all(torch.equal(loaded[name], want[name]) for name in want)


def test_slices_and_conversions_arrive(tmp_path):
    array = (numpy.arange(1 << 20, dtype="f4") % 1000).reshape(1 << 10, 1 << 10)
    weigh.save({"w": array, "n": numpy.arange(5)}, tmp_path / "x")
    index = (slice(None, None, -1), slice(0, 512, 2))
    loaded = load(tmp_path / "x", Pretended(), [("w", index), ("n", None)], stage=1000, floats="F16", budget=1 << 20)
    assert torch.equal(loaded["w"], torch.from_numpy(array[index].astype("f2").copy()))
    assert loaded["n"].tolist() == list(range(5))


@pytest.mark.parametrize(("kept", "floats"), [("F64", None), ("F32", "F64"), ("BF16", "F64"), ("F16", "F32")])
def test_a_slice_that_is_turned_around_may_grow_beyond_what_is_read_ahead(write, kept, floats):
    bytes_each, count = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}[kept], 1 << 18
    one = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}.get(kept)
    content = numpy.full(count, 1, one).tobytes() if one else b"\x80\x3f" * count
    assert len(content) == bytes_each * count
    path = write({"w": (kept, (count,), content)})
    # The budget holds what is in the file, and not what becomes of it.
    loaded = load(path, Pretended(), [("w", slice(None, None, -1))], floats=floats, budget=1 << 20, stage=64 << 10)
    assert loaded["w"].numel() == count and bool((loaded["w"] == 1).all())
    assert weigh.open(path).load({"w": slice(None, None, -1)}, dtype=floats, framework="torch")["w"].dtype == (
        loaded["w"].dtype
    )


def test_small_tensors_share_a_buffer(tmp_path):
    weigh.save({f"w{number}": numpy.full(10, number, "u1") for number in range(100)}, tmp_path / "x")
    device = Pretended()
    loaded = load(tmp_path / "x", device)
    assert all(set(tensor.tolist()) == {int(name[1:])} for name, tensor in loaded.items())
    assert len(device.pinned) == 1 and device.pinned[0].numel() <= 100 * (10 + 64) and device.waits == 0


def test_copies_are_over_before_an_error_is_raised(large, everything):
    device = Pretended(fault=ZeroDivisionError("a fault"))
    with pytest.raises(ZeroDivisionError, match="a fault"):
        load(large, device, stage=1000)
    assert device.is_finished
    device = Pretended()
    with pytest.raises(TypeError, match="^F6_E2M3.whole: torch has no dtype"):
        load(everything[1], device)
    assert device.is_finished
    with pytest.raises(KeyError):
        load(large, Pretended(), [("q", None)])

    def stop(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load(large, Pretended(), progress=stop)


def test_progress_is_told_to_the_end(large):
    told = []
    load(large, Pretended(), progress=lambda *pair: told.append(pair))
    total = weigh.open(large).nbytes
    assert told[-1] == (total, total)
    assert told == sorted(told)


def test_load_goes_this_way_if_there_is_such_a_device(large, monkeypatch):
    from weigh._frameworks import _torch

    device = Pretended()
    monkeypatch.setattr(_torch, "target", lambda given: given and torch.device(given))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(_cuda, "Cuda", lambda given: device)
    loaded = weigh.open(large).load(["w2", "w0"], device="cuda:0")
    assert list(loaded) == ["w2", "w0"] and device.is_finished
    assert torch.equal(loaded["w2"], weigh.open(large)["w2"].torch())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_real_device_gets_the_same(large, everything):
    for path in (large, everything[1]):
        names = [name for name in weigh.open(path) if not name.startswith(MISSING)]
        loaded = weigh.load(path, names, device="cuda:0")
        for name, tensor in weigh.load(path, names, framework="torch").items():
            assert loaded[name].device == torch.device("cuda:0") and raw(loaded[name].cpu()) == raw(tensor), name
        for name, tensor in weigh.open(path).stream(names, device="cuda"):
            assert raw(tensor.cpu()) == weigh.open(path)[name].tobytes()
