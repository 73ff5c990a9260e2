"""How long memory lives: as long as what looks at it, and no longer."""

import gc
import os
import sys
import weakref

import pytest

import weigh

numpy = pytest.importorskip("numpy")

MIB = 1 << 20


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.safetensors"
    weigh.save({"a": numpy.full(4 * MIB, 7, "u1"), "b": numpy.full((3, 5), 1.5, "f4")}, path)
    return path


def test_tensors_outlive_checkpoint_and_file(path):
    checkpoint = weigh.open(path)
    lazy, array = checkpoint["b"], checkpoint["a"].numpy()
    loaded = checkpoint.load()
    gone = weakref.ref(checkpoint)
    del checkpoint
    gc.collect()
    assert gone() is None
    if sys.platform != "win32":
        os.unlink(path)
        assert lazy.numpy().tolist() == [[1.5] * 5] * 3
    assert array.min() == array.max() == 7
    b = loaded.pop("b")
    del loaded
    gc.collect()
    assert b.tolist() == [[1.5] * 5] * 3


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open are not replaced there")
def test_a_file_that_was_replaced_is_told_of_and_never_mixed_up(path):
    checkpoint = weigh.open(path)
    before = checkpoint["b"].numpy()
    # With the same names and shapes: what was read of it would look right.
    weigh.save({"a": numpy.zeros(4 * MIB, "u1"), "b": numpy.zeros((3, 5), "f4")}, path)
    for call in (
        lambda: checkpoint["b"].numpy(),
        lambda: checkpoint["b"][1].tobytes(),
        lambda: checkpoint.load(),
        lambda: list(checkpoint.stream()),
    ):
        with pytest.raises(OSError, match="replaced") as caught:
            call()
        assert caught.value.filename == str(path)
    assert before.tolist() == [[1.5] * 5] * 3
    assert not weigh.load(path)["a"].any()


def views():
    yield "memoryview", lambda buffer: memoryview(buffer)
    yield "cast", lambda buffer: memoryview(buffer).cast("B")[1:]
    yield "numpy", lambda buffer: numpy.asarray(buffer)
    yield "slice", lambda buffer: numpy.asarray(buffer)[1:][::-1]
    yield "dlpack", lambda buffer: numpy.from_dlpack(buffer)


@pytest.mark.parametrize(("name", "view"), [pytest.param(*one, id=one[0]) for one in views()])
def test_whatever_looks_at_a_buffer_keeps_it(path, name, view):
    made = view(weigh.open(path)["a"].read())
    gc.collect()
    # Whatever the memory would be used for next would be seen.
    others = [weigh.open(path)["b"].read() for _ in range(10)] + [bytearray(4 * MIB)]
    assert set(bytes(made)) == {7}
    del others


def test_torch_keeps_it_too(path):
    torch = pytest.importorskip("torch")
    for make in (
        lambda: weigh.open(path)["a"].torch(),
        lambda: torch.from_dlpack(weigh.open(path)["a"].read()),
        lambda: torch.frombuffer(weigh.open(path)["a"].read(), dtype=torch.uint8),
        lambda: weigh.open(path)["a"].torch().view(torch.int32)[5:].view(torch.uint8),
    ):
        tensor = make()
        gc.collect()
        bytearray(4 * MIB)
        assert bool((tensor == 7).all())


def test_the_buffer_protocol_is_told_what_it_is(path):
    buffer = weigh.open(path)["b"].read()
    view = memoryview(buffer)
    assert (view.format, view.itemsize, view.shape, view.strides, view.nbytes, view.readonly) == (
        "f", 4, (3, 5), (20, 4), 60, False,
    )
    assert (buffer.dtype, buffer.shape, buffer.nbytes, len(buffer), buffer.is_aligned) == ("F32", (3, 5), 60, 60, True)
    assert buffer.address % 64 == 0
    assert repr(buffer) == "<weigh.Buffer F32 [3, 5]>"
    view[0, 0] = 2.5
    assert numpy.asarray(buffer)[0, 0] == 2.5
    assert bytes(buffer)[:4] == numpy.float32(2.5).tobytes()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is counted on Linux")
def test_memory_is_given_back(tmp_path):
    size = 64 * MIB
    path = tmp_path / "x"
    weigh.save({f"w{number}": numpy.ones(size // 4, "u1") for number in range(4)}, path)
    gc.collect()
    weigh.load(path)
    before = resident()
    for _ in range(5):
        loaded = weigh.load(path)
        assert resident() > before + size // 2
        del loaded
    gc.collect()
    assert resident() < before + size // 2
    # One allocation is given back in parts, as its tensors go.
    loaded = weigh.load(path)
    full = resident()
    for name in ("w0", "w1", "w2"):
        del loaded[name]
    assert resident() < full - size // 2
    assert set(loaded["w3"][:10]) == {1}


def test_nothing_of_python_is_kept(path):
    import collections

    checkpoint = weigh.open(path)

    def work():
        checkpoint.load()
        checkpoint["b"][1:, ::2].numpy()
        list(checkpoint.stream())
        list(checkpoint.items())
        with pytest.raises(KeyError):
            checkpoint["q"]
        weigh.to_bytes({"w": numpy.ones(3)})
        weigh.check(path)

    for _ in range(3):
        work()
    gc.collect()
    before = collections.Counter(type(thing).__name__ for thing in gc.get_objects())
    references = sys.getrefcount(None)
    for _ in range(100):
        work()
    gc.collect()
    after = collections.Counter(type(thing).__name__ for thing in gc.get_objects())
    grown = {name: count for name, count in (after - before).items() if count >= 50}
    assert grown == {}
    assert abs(sys.getrefcount(None) - references) < 1000
