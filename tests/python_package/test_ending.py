"""Programs that end, or are interrupted, while a file object is asked for bytes: none crashes, hangs or goes on."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("numpy")

#: A file object that is slow, and gives little at a time; what it reads from is made here too.
SLOW = """
import io, sys, threading, time
import numpy, weigh

content = weigh.to_bytes({f"t{i}": numpy.full(20_000, i, "f4") for i in range(40)})

class Slow(io.BytesIO):
    def read(self, size=-1):
        time.sleep(0.02)
        return super().read(min(size, 20_000))

checkpoint = weigh.open(Slow(content))
"""

ENDINGS = {
    "a stream that is not read to its end": "stream = checkpoint.stream(budget=1 << 20)\nnext(stream)",
    "a stream that nothing was taken of": "stream = checkpoint.stream(budget=1 << 20)",
    "a stream, by exit": "stream = checkpoint.stream(budget=1 << 20)\nnext(stream)\nsys.exit(0)",
    "a load in a thread that nobody waits for": """
threading.Thread(target=checkpoint.load, daemon=True).start()
time.sleep(0.1)
""",
    "a stream in such a thread": """
threading.Thread(target=lambda: list(checkpoint.stream(budget=1 << 20)), daemon=True).start()
time.sleep(0.1)
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_while_a_file_object_is_read(ending, environment):
    program = SLOW + ENDINGS[ending]
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=60)
        assert (run.returncode, run.stdout) == (0, b""), run.stderr.decode()


INTERRUPTED = {
    "stream": "print('now', flush=True)\nfor name, tensor in checkpoint.stream(budget=1 << 20): del tensor",
    "load": "print('now', flush=True)\ncheckpoint.load()",
    "open": """
class Slower(Slow):
    def read(self, size=-1):
        time.sleep(0.2)
        return io.BytesIO.read(self, min(size, 20))

print('now', flush=True)
weigh.open(Slower(content))
""",
    "check": """
class Slower(Slow):
    def read(self, size=-1):
        time.sleep(0.2)
        return io.BytesIO.read(self, min(size, 20))

print('now', flush=True)
weigh.check(Slower(content))
""",
}


@pytest.mark.skipif(os.name == "nt", reason="a process cannot be sent Ctrl-C alone")
@pytest.mark.parametrize("what", INTERRUPTED)
def test_ctrl_c_ends_the_reading_of_a_file_object(what, environment):
    program = SLOW.replace("(0.02)", "(0.1)").replace("20_000))", "2_000))") + INTERRUPTED[what]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"now\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    # All of it takes minutes.
    _, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in said
