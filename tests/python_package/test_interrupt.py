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
    ],
    ids=["load", "one", "stream", "stream held", "loads"],
)
def test_reading_is_interrupted(path, environment, program):
    assert run(program, path, environment) == "interrupted"


def test_saving_is_interrupted_and_leaves_nothing(path, environment):
    before = path.read_bytes()
    # The signal comes while bytes are written: the first that is heard of them sends it.
    program = """
array = numpy.ones(1 << 28, "u1")
sent = []
def tell(done, total):
    if 0 < done < total and not sent:
        sent.append(done)
        os.kill(os.getpid(), signal.SIGINT)
soon(0.3)
while True:
    weigh.save({"a": array}, path + ".new", progress=tell)
"""
    assert run(program, path, environment) == "interrupted"
    left = [name for name in os.listdir(path.parent) if name not in (path.name, path.name + ".new")]
    assert left == []
    if os.path.exists(f"{path}.new"):
        assert weigh.open(f"{path}.new")["a"].size == 1 << 28
    assert path.read_bytes() == before


def test_a_callable_that_raises_stops_a_save_and_leaves_what_was_there(tmp_path):
    import numpy

    path = tmp_path / "x"
    weigh.save({"old": numpy.ones(1)}, path)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weigh.save({"new": numpy.ones(1 << 26)}, path, progress=stop)
    assert list(weigh.open(path)) == ["old"] or os.path.getsize(path) > 1 << 26
    assert os.listdir(tmp_path) == ["x"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
