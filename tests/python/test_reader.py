"""Runs the two readers of `docs/reader.md`, as a reader of that page would."""

import re
import shutil
import subprocess
import sys

import pytest
from safetensors import deserialize, safe_open


@pytest.fixture(scope="module", params=["python", "rust"])
def reader(request, root, tmp_path_factory):
    """A command that runs one of the readers."""
    page = (root / "docs" / "reader.md").read_text("utf-8")
    (code,) = re.findall(rf"^```{request.param}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    folder = tmp_path_factory.mktemp("reader")
    if request.param == "python":
        source = folder / "reader.py"
        source.write_text(code, "utf-8")
        return [sys.executable, source]
    compiler = shutil.which("rustc")
    assert compiler, "rustc is not on the path"
    source = folder / "reader.rs"
    source.write_text(code, "utf-8")
    program = folder / "reader"
    subprocess.run(
        [compiler, "--edition=2024", "--deny=warnings", source, "-o", program], check=True
    )
    return [program]


def read(reader, path):
    return subprocess.run([*reader, path], capture_output=True, text=True, timeout=60)


def lines(path):
    """What a reader must print, a line for each tensor; blanks in a shape are its own choice."""
    sizes = {name: len(entry["data"]) for name, entry in deserialize(path.read_bytes())}
    offset = 0
    with safe_open(path, framework="np") as file:
        for name in file.offset_keys():
            tensor = file.get_slice(name)
            end = offset + sizes[name]
            shape = ",".join(map(str, tensor.get_shape()))
            yield f"{name} {tensor.get_dtype()} [{shape}] {offset}..{end}"
            offset = end


def test_the_examples_are_read_as_the_package_reads_them(reader, examples):
    for path in sorted(examples.rglob("*.safetensors")):
        got = read(reader, path)
        assert got.returncode == 0, got.stderr
        assert got.stdout.replace(", ", ",").splitlines() == list(lines(path))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda whole: whole[:-1], "the data should end at 42880, the file has 42879 bytes of it"),
        (lambda whole: whole + b"\0", "the data should end at 42880, the file has 42881 bytes of it"),
        (lambda whole: whole[:5], "no header length"),
        (lambda whole: whole[:100], "the header does not end in the file"),
        (lambda whole: whole.replace(b"[0,128]", b"[8,136]", 1), "it should begin at 0"),
    ],
    ids=["truncated", "over-long", "no length", "no header", "gap"],
)
def test_damage_is_told(reader, examples, tmp_path, damage, complaint):
    whole = (examples / "tiny" / "model-00001-of-00003.safetensors").read_bytes()
    damaged = damage(whole)
    assert damaged != whole
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(damaged)
    got = read(reader, path)
    assert got.returncode != 0
    assert complaint in got.stderr
    assert "Traceback" not in got.stderr and "panicked" not in got.stderr
