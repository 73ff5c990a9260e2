"""The README's commands print what it says they print."""

import re
import shlex
import subprocess

SHOWN = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(root):
    """Each command of the program that the README shows, with its output."""
    for block in SHOWN.findall((root / "README.md").read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            words = shlex.split(command.replace("cargo run --release --", "weigh"))
            if words[0] == "weigh":
                yield words, output.strip("\n")


def test_every_command_prints_what_is_shown(root, weigh):
    shown = list(commands(root))
    assert len(shown) >= 5
    for words, output in shown:
        ended = subprocess.run(
            [weigh.program, *words[1:]],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert ended.stdout.strip("\n") == output, " ".join(words)
