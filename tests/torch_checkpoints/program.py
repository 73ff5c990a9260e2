"""Runs the program, and reads what it wrote without any reader of safetensors."""

import json
import subprocess
from typing import NamedTuple

from state import Stored


class Refusal(NamedTuple):
    """That the program refused, and what it said."""

    code: int
    text: str


class Weigh:
    """The program. It neither ends by a signal nor with an exit code that it has not."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        command = [self.path, *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert ended.returncode in (0, 1, 2), (command, ended.returncode, ended.stderr)
        assert "panicked" not in ended.stderr, (command, ended.stderr)
        return ended

    def convert(self, source, target, *options):
        """The tensors of the file that a checkpoint becomes, or the refusal, after which there is no file.

        With `--partial` there may be a file although something is missing: the exit code is 1 then.
        """
        target.unlink(missing_ok=True)
        ended = self.run("convert", source, "-o", target, "--json", *options)
        if ended.returncode == 0 or ("--partial" in options and ended.returncode == 1 and target.exists()):
            return read(target)[0]
        assert not target.exists(), "a refused conversion left a file"
        return Refusal(ended.returncode, ended.stderr + ended.stdout)

    def converted_with_metadata(self, source, target, *options):
        target.unlink(missing_ok=True)
        ended = self.run("convert", source, "-o", target, *options)
        assert ended.returncode == 0, ended.stderr
        return read(target)

    def scan(self, folder, *options):
        """What a scan of a folder says of each file, by the file's name: its entry in `weigh.scan/1`."""
        ended = self.run("scan", "--json", folder, *options)
        document = json.loads(ended.stdout)
        return {entry["path"].rpartition("/")[2]: entry for entry in document["files"]}


def read(path):
    """The tensors and the metadata of a safetensors file."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        tensors[name] = Stored(entry["dtype"], tuple(entry["shape"]), content[first:last])
    return tensors, metadata


def same(found, wanted):
    """Fails with the names that differ, and how, and nothing else."""
    assert not isinstance(found, Refusal), f"refused: {found.text}"
    differences = [f"{name} is missing" for name in wanted if name not in found]
    differences += [f"{name} is there" for name in found if name not in wanted]
    differences += [
        f"{name} is {found[name]!r}, not {wanted[name]!r}"
        for name in wanted
        if name in found and found[name] != wanted[name]
    ]
    assert not differences, "\n".join(differences)
