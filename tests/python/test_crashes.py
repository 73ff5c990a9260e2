"""The program killed at each call that changes anything: what it leaves is the old or the new.

strace(1) does it: it can send a signal as a call begins, and the call is not made then.
"""

import collections
import re
import shutil
import subprocess

import ml_dtypes  # noqa: F401, gives numpy its bfloat16
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file

CALLS = (
    "openat,pwrite64,pwritev,write,fsync,fdatasync,rename,renameat2,linkat,unlink,ftruncate,"
    "fallocate,copy_file_range,fchmod,mkdir"
)


@pytest.fixture(scope="module")
def strace():
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True)
    if tried.returncode:
        pytest.skip(f"strace may not trace here: {tried.stderr.decode().strip()}")


def state(folder):
    """What a reader of the folder gets: its tensors, or nothing if it refuses them."""
    loaded = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            part = load_file(file)
        except SafetensorError as error:
            return f"refused: {error}"
        loaded |= {name: array.tobytes() for name, array in part.items()}
    return loaded


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


class Killed:
    """A command that is killed at every call, each time in a fresh folder."""

    def __init__(self, program, tmp_path, make, arguments):
        self.program, self.tmp_path, self.make, self.arguments = program, tmp_path, make, arguments
        self.number = 0

    def fresh(self):
        self.number += 1
        folder = self.tmp_path / str(self.number)
        folder.mkdir()
        self.make(folder)
        return folder

    def run(self, folder, *options):
        # `-f` follows threads; what the program says is not looked at.
        command = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", *options, self.program, *self.arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=60).returncode

    def points(self):
        """Each call with how often it is made, once the program has begun to write."""
        folder = self.fresh()
        log = self.tmp_path / "trace"
        assert self.run(folder, "-o", log) == 0
        names = re.findall(r"^(?:\d+ +)?(\w+)\(", log.read_text(), re.M)
        return folder, collections.Counter(names)

    def everywhere(self, check):
        whole, counts = self.points()
        new = state(whole)
        killed = 0
        for call, count in counts.items():
            for nth in range(1, count + 1):
                folder = self.fresh()
                self.run(folder, "-o", "/dev/null", "-e", f"inject={call}:signal=SIGKILL:when={nth}")
                check(folder, new, f"{call} {nth} of {count}")
                shutil.rmtree(folder)
                killed += 1
        print(f"{' '.join(self.arguments)}: killed at {killed} calls")
        return killed


def test_one_file_over_itself(strace, weigh, examples, tmp_path):
    source = examples / "tiny" / "model-00001-of-00003.safetensors"

    def make(folder):
        shutil.copy(source, folder / "m.safetensors")

    old = {name: array.tobytes() for name, array in load_file(source).items()}

    def check(folder, new, at):
        assert state(folder) in (old, new), at
        # Nothing but a complete file that had a name already.
        assert len(leftovers(folder)) <= 1, at

    command = ["rename", "m.safetensors", "s/model/m/", "-o", "m.safetensors", "--force"]
    assert Killed(weigh.program, tmp_path, make, command).everywhere(check) >= 20


def test_a_set_over_a_set(strace, weigh, examples, tmp_path):
    def make(folder):
        for file in (examples / "tiny").glob("model*"):
            shutil.copy(file, folder)

    def check(folder, new, at):
        # What the program takes for whole is all of the old or all of the new.
        report = weigh.json("check", "--format", "json", folder, codes=(0, 1, 2))
        checkpoints = report["checkpoints"]
        is_whole = len(checkpoints) == 1 and checkpoints[0]["verdict"].startswith("valid")
        if is_whole:
            assert state(folder) == old, at
        else:
            index = folder / "model.safetensors.index.json"
            assert not index.exists(), at

    whole = tmp_path / "whole"
    whole.mkdir()
    make(whole)
    old = state(whole)
    command = ["split", ".", "-o", ".", "--force", "--max-size", "60KB"]
    assert Killed(weigh.program, tmp_path, make, command).everywhere(check) >= 40
