"""Ctrl-C: a KeyboardInterrupt soon, and nothing left behind."""

import os
import signal
import subprocess
import sys

import pytest

import weigh

pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by number")

PREPARE = """
import os, signal, sys, threading, time
import numpy, weigh

def soon(seconds=0.1):
    def send():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()

class Slow:
    # A source that takes its time: what is waited for does not depend on the machine's speed.
    name = "slow"
    def __init__(self, path):
        self.content = open(path, "rb").read()
        self.at = 0
        self.slow = False
    def seek(self, at, whence=0):
        self.at = at if whence == 0 else len(self.content) + at
        return self.at
    def tell(self):
        return self.at
    def read(self, count):
        if self.slow:
            time.sleep(0.3)
        made = self.content[self.at:self.at + count]
        self.at += len(made)
        return made

path = sys.argv[1]
try:
    # Not as text: an interrupt of that is noted by the interpreter, and ends the process in its own way.
    exec(compile(sys.argv[2], "program", "exec"))
except KeyboardInterrupt:
    print("interrupted")
    sys.stdout.flush()
    # Still of use.
    assert weigh.load(bytearray(weigh.to_bytes({"w": numpy.ones(3)})))["w"].sum() == 3
else:
    print("done")
"""


def run(program, path, environment):
    command = [sys.executable, "-c", PREPARE, str(path), program]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture
def path(tmp_path):
    import numpy

    path = tmp_path / "x.safetensors"
    weigh.save({f"w{number}": numpy.ones(1 << 20, "u1") for number in range(40)}, path)
    return path


@pytest.mark.parametrize(
    "program",
    [
        "file = Slow(path); c = weigh.open(file); file.slow = True; soon(); c.load()",
        "file = Slow(path); c = weigh.open(file); file.slow = True; soon(); [c[f'w{n}'].numpy() for n in range(3)]",
        "file = Slow(path); c = weigh.open(file); file.slow = True; soon(); list(c.stream())",
        "c = weigh.open(path); s = c.stream(budget=4 << 20, patience=60); soon(); held = list(s)",
        "c = weigh.open(path); soon(0.3)\nfor _ in range(10 ** 6): c.load()",
        "soon(0.3)\nwhile True: weigh.scan(path)",
        "soon(0.3)\nwhile True: weigh.scan(memoryview(b'x' * 100))",
    ],
    ids=["load", "one", "stream", "stream held", "loads", "scans", "scans of content"],
)
def test_reading_is_interrupted(path, environment, program):
    assert run(program, path, environment) == "interrupted"


#: What a save may have written when it is told to stop, and still stop in time: it is told 20 times a second.
SIZES = (1 << 28, 1 << 29, 1 << 30)


def test_saving_is_interrupted_and_leaves_what_was_there(path, environment):
    before = path.read_bytes()
    # The signal comes while bytes are written: another thread sends it as soon as some are.
    program = f"""
for size in {SIZES}:
    begun, told = threading.Event(), []
    def tell(done, total):
        told.append(done)
        begun.set()
    def send():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    try:
        weigh.save({{"a": numpy.zeros(size, "u1")}}, path, progress=tell, sync=False)
        time.sleep(5)
    except KeyboardInterrupt:
        # Later than that, the end may have come first: more takes longer.
        if told[-1] < size // 2:
            raise
    open(path, "wb").write(before)
"""
    program = "before = open(path, 'rb').read()" + program
    assert run(program, path, environment) == "interrupted"
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_callable_that_raises_stops_a_save_and_leaves_what_was_there(tmp_path):
    import numpy

    path = tmp_path / "x"
    weigh.save({"old": numpy.ones(1)}, path)
    before = path.read_bytes()
    for size in SIZES:
        told = []

        def stop(done, total):
            told.append(done)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            weigh.save({"new": numpy.zeros(size, "u1")}, path, progress=stop, sync=False)
        assert len(told) == 1 and os.listdir(tmp_path) == ["x"]
        if told[0] < size // 2:
            break
        path.write_bytes(before)
    else:
        pytest.fail("it was told of no save before that was half done")
    assert path.read_bytes() == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
