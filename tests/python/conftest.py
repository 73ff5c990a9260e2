"""What the tests of the `weigh` program share.

`cargo xtask python` sets `WEIGH_BIN` to the program that it built.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Weigh:
    """Runs the program, and holds it to its exit codes."""

    def __init__(self, program):
        self.program = program

    def run(self, *arguments, codes=(0,)):
        """What the program prints on stdout; its exit code must be one of `codes`."""
        command = [self.program, *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode in codes, (command, ended.returncode, ended.stderr)
        return ended.stdout

    def json(self, *arguments, codes=(0,)):
        """The same, read as JSON of the strict kind: no bare NaN or Infinity."""
        return json.loads(self.run(*arguments, codes=codes), parse_constant=refuse)


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


@pytest.fixture(scope="session")
def weigh():
    program = os.environ.get("WEIGH_BIN")
    if not program:
        pytest.fail("WEIGH_BIN does not name the program; run `cargo xtask python`")
    return Weigh(program)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def examples():
    return ROOT / "examples"


@pytest.fixture
def truncated(tmp_path, examples):
    """A shard of the example that lost its last 100 bytes."""
    whole = (examples / "tiny" / "model-00001-of-00003.safetensors").read_bytes()
    path = tmp_path / "truncated.safetensors"
    path.write_bytes(whole[:-100])
    return path
