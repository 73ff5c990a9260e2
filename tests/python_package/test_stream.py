"""Streams: one tensor after another, within a memory budget."""

import gc
import threading

import pytest

import weigh

numpy = pytest.importorskip("numpy")

MIB = 1 << 20
EACH = 2 * MIB
COUNT = 24


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "model.safetensors"
    arrays = {f"w{number}": numpy.full((EACH // 8, 8), number, "u1") for number in range(COUNT)}
    weigh.save(arrays, path)
    return path


def test_every_tensor_comes_once_in_either_order(path):
    checkpoint = weigh.open(path)
    for order in ("file", "given"):
        seen = []
        for name, array in checkpoint.stream(order=order, budget=16 * MIB):
            assert array.shape == (EACH // 8, 8) and array[0, 0] == array[-1, -1] == int(name[1:])
            seen.append(name)
        assert sorted(seen) == sorted(checkpoint)
    assert [name for name, _ in checkpoint.stream(["w7", "w3"], order="given")] == ["w7", "w3"]
    with pytest.raises(ValueError, match="order"):
        checkpoint.stream(order="random")


def test_memory_stays_within_the_budget(path):
    budget = 8 * MIB
    held, most = [], 0
    for _, array in weigh.open(path).stream(budget=budget, patience=60):
        held.append(array)
        # What is held counts: at most two of them, and the rest is for what is read ahead.
        held = held[-2:]
        most = max(most, sum(array.nbytes for array in held))
        del array
    assert most <= budget


def test_whoever_holds_everything_is_told_so(path):
    held = []
    with pytest.raises(weigh.WeighError) as caught:
        for _, array in weigh.open(path).stream(budget=8 * MIB, patience=0.2):
            held.append(array)
    assert caught.value.code == "budget-held"
    assert 1 <= len(held) * EACH // MIB <= 8
    # What was handed out is still good.
    assert all(array.min() == array.max() for array in held)


def test_dropping_gives_room_back_from_another_thread(path):
    handed, room = [], threading.Semaphore(2)

    def drop():
        for _ in range(COUNT):
            room.acquire()
            while not handed:
                pass
            handed.pop()

    thread = threading.Thread(target=drop)
    thread.start()
    for _, array in weigh.open(path).stream(budget=10 * MIB, patience=60):
        handed.append(array)
        room.release()
        del array
    thread.join(60)
    assert not thread.is_alive()


def test_what_is_larger_than_the_budget_comes_in_pieces(path):
    small = weigh.open(path).stream("w5", budget=MIB)
    with pytest.raises(weigh.WeighError, match="w5: .*larger than the budget") as caught:
        next(small)
    assert caught.value.code == "budget" and "pieces=True" in caught.value.help
    assert list(small) == []
    parts, at = [], 0
    for name, piece in weigh.open(path).stream("w5", budget=MIB, pieces=True):
        assert isinstance(piece, weigh.Piece) and name == "w5"
        assert piece.shape == (EACH // 8, 8) and piece.start == at and piece.stop == at + piece.tensor.size
        assert piece.tensor.ndim == 1
        assert piece.is_last == (piece.stop == EACH)
        assert repr(piece) == f"Piece({piece.start}:{piece.stop} of {piece.shape})"
        at = piece.stop
        parts.append(piece.tensor.copy())
        del piece
    assert at == EACH and len(parts) > 1
    assert set(numpy.concatenate(parts)) == {5}


def test_a_budget_is_at_least_as_large_as_it_says(path):
    assert next(weigh.open(path).stream("w1", budget=MIB, pieces=True))
    for budget in (MIB - 1, 0, -1):
        with pytest.raises(ValueError, match="at least 1 MiB"):
            weigh.open(path).stream("w1", budget=budget)


def test_a_tensor_that_the_budget_has_room_for_is_whole(path):
    for budget, is_whole in ((2 * EACH, True), (EACH - 4096, False)):
        _, first = next(weigh.open(path).stream("w1", budget=budget, pieces=True))
        assert isinstance(first, weigh.Piece) != is_whole, budget


def test_it_can_be_left_early(path):
    checkpoint = weigh.open(path)
    for name, _ in checkpoint.stream(budget=4 * MIB):
        break
    gc.collect()
    with checkpoint.stream(budget=4 * MIB) as stream:
        _, kept = next(stream)
    assert list(stream) == [] and kept.max() == kept.min()
    stream.close()
    with pytest.raises(ZeroDivisionError):
        for name, array in checkpoint.stream(budget=4 * MIB):
            1 / 0
    assert threading.active_count() < 20


def test_closing_wakes_whoever_waits(path):
    stream = weigh.open(path).stream(budget=4 * MIB, patience=600)
    held, ended = [], threading.Event()

    def take():
        try:
            for _, array in stream:
                held.append(array)
        except weigh.CancelledError:
            pass
        ended.set()

    thread = threading.Thread(target=take)
    thread.start()
    # Everything is held before long, and there is no end to the waiting but this.
    ended.wait(1)
    stream.close()
    assert ended.wait(60)
    thread.join()


def test_several_threads_may_share_one(path):
    stream, names, lock = weigh.open(path).stream(budget=64 * MIB), [], threading.Lock()

    def take():
        for name, _ in stream:
            with lock:
                names.append(name)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == sorted(weigh.open(path))


def test_what_a_framework_cannot_do_ends_it(write):
    torch = pytest.importorskip("torch")
    path = write({"a": ("U8", (1,), b"a"), "s": ("F6_E2M3", (4,), b"abc")})
    stream = weigh.open(path).stream("*", framework="torch", order="given")
    assert torch.equal(next(stream)[1], torch.tensor([97], dtype=torch.uint8))
    with pytest.raises(TypeError, match="^s: "):
        next(stream)
    assert list(stream) == []


def test_floats_are_converted_on_the_way(write):
    path = write({"h": ("BF16", (2,), b"\x80\x3f\x00\x40"), "n": ("I8", (1,), b"\x05")})
    read = dict(weigh.open(path).stream(dtype="F32"))
    assert read["h"].dtype == "float32" and read["h"].tolist() == [1, 2] and read["n"].tolist() == [5]
