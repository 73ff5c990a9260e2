"""Threads and processes: many may use one checkpoint, and others run while it reads."""

import os
import subprocess
import sys
import threading
import time

import pytest

import weigh

numpy = pytest.importorskip("numpy")

MIB = 1 << 20


def run(count, work):
    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "x.safetensors"
    weigh.save({f"w{number}": numpy.full((1000, number + 1), number, "i4") for number in range(30)}, path)
    return path


def test_many_threads_use_one_checkpoint(path):
    checkpoint = weigh.open(path)

    def work(number):
        for turn in range(10):
            name = f"w{(number + turn) % 30}"
            assert set(checkpoint[name][::7].numpy().flat) == {int(name[1:])}
            assert len(checkpoint.load("w1*")) == 11
            assert list(checkpoint)[0] == "w0" and name in checkpoint
            if turn % 5 == 0:
                for other, array in checkpoint.stream(budget=MIB):
                    assert array[0, 0] == int(other[1:])

    run(8, work)


def test_many_threads_save(tmp_path):
    array = numpy.arange(1000)
    run(8, lambda number: weigh.save({"w": array + number}, tmp_path / str(number)))
    for number in range(8):
        assert weigh.load(tmp_path / str(number))["w"][0] == number
    # To one path: one of them is there, whole.
    run(8, lambda number: weigh.save({"w": array + number}, tmp_path / "same"))
    read = weigh.load(tmp_path / "same")["w"]
    assert numpy.array_equal(read, array + read[0])
    assert sorted(os.listdir(tmp_path)) == sorted([*map(str, range(8)), "same"])


def test_many_threads_ask_one_object_of_python(path):
    import io

    checkpoint = weigh.open(io.BytesIO(path.read_bytes()))
    run(8, lambda number: [checkpoint.load() for _ in range(5)])


class Ticking:
    """A thread of pure Python that notes when it ran, and says how long it could not."""

    def __init__(self):
        self.ticks, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended.is_set():
            self.ticks.append(time.monotonic())
            time.sleep(0.001)

    def __enter__(self):
        self.thread.start()
        while not self.ticks:
            time.sleep(0.001)
        self.began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.stopped = time.monotonic()
        self.ended.set()
        self.thread.join()

    def assert_others_ran(self, part=0.5):
        """No gap was longer than a part of all of it: one that holds the lock throughout has a gap that is all."""
        inside = [self.began, *(tick for tick in self.ticks if self.began < tick < self.stopped), self.stopped]
        gaps = [later - earlier for earlier, later in zip(inside, inside[1:])]
        assert len(gaps) > 1, "nobody else ran"
        assert max(gaps) < max(part * (self.stopped - self.began), 0.05), (max(gaps), self.stopped - self.began)


@pytest.mark.parametrize("what", ["load", "save", "open_reader"])
def test_other_threads_run_meanwhile(tmp_path, what):
    import io

    size = 256 * MIB
    path = tmp_path / "x.safetensors"
    arrays = {"w": numpy.ones(size, "u1")}
    if what != "save":
        weigh.save(arrays, path, sync=False)
    source = io.BytesIO(path.read_bytes()) if what == "open_reader" else path
    checkpoint = None if what == "save" else weigh.open(source)
    with Ticking() as ticking:
        if what == "save":
            weigh.save(arrays, path, sync=False)
        else:
            checkpoint._native.read([("w", None)], overcommit=True)
    # What an object of Python reads, it copies with the lock held, a piece at a time.
    ticking.assert_others_ran()


def snapshots():
    yield "numpy", lambda size: numpy.ones(size, "u1")
    yield "turned", lambda size: numpy.ones((size // 4096, 4096), "u1")[::-1]
    yield "buffer", lambda size: weigh.open(memoryview(weigh.to_bytes({"w": numpy.ones(size, "u1")})))["w"].read()
    yield "torch", lambda size: torch().ones(size, dtype=torch().uint8)
    yield "torch turned", lambda size: torch().ones((size // 4096, 4096), dtype=torch().uint8).T


def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in snapshots()])
def test_other_threads_run_while_a_snapshot_is_made(make):
    from weigh import _frameworks

    tensor = make(256 * MIB)
    _frameworks.entries({"w": make(4096)}, own=True)
    with Ticking() as ticking:
        _frameworks.entries({"w": tensor}, own=True)
    ticking.assert_others_ran()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_checkpoint_can_be_used_after_a_fork(path, environment):
    program = """
import os, sys, warnings
import weigh
warnings.simplefilter("ignore")
checkpoint = weigh.open(sys.argv[1])
first = checkpoint.load()
stream = checkpoint.stream(budget=16 << 20)
next(stream)
child = os.fork()
if child == 0:
    again = checkpoint.load()
    assert all((again[name] == first[name]).all() for name in first)
    assert len(list(checkpoint.stream())) == len(first)
    weigh.save(again, sys.argv[1] + ".child")
    # The thread that reads for the stream is not here, and is not waited for.
    try:
        next(stream)
    except RuntimeError as error:
        assert "fork" in str(error)
    else:
        os._exit(2)
    stream.close()
    del stream
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert len(list(stream)) == len(first) - 1
"""
    subprocess.run([sys.executable, "-c", program, str(path)], env=environment, check=True, timeout=120)
    assert len(weigh.open(f"{path}.child")) == 30


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_reads_one_checkpoint(path, environment, tmp_path, method):
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    script = tmp_path / "pool.py"
    script.write_text(
        """
import multiprocessing, sys, warnings
import weigh
warnings.simplefilter("ignore")
def work(given):
    checkpoint, name = given
    return int(checkpoint[name].numpy()[0, 0])
if __name__ == "__main__":
    checkpoint = weigh.open(sys.argv[1])
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(pool.map(work, [(checkpoint, name) for name in checkpoint]))
"""
    )
    made = subprocess.run(
        [sys.executable, str(script), str(path), method], env=environment, check=True, timeout=120, capture_output=True
    )
    assert made.stdout.decode().strip() == str(list(range(30)))
