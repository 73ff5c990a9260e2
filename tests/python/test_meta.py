"""Metadata that `weigh meta` changes, read back by the reference implementation; and what needs a terminal."""

import json
import os

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

TENSORS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.arange(5, dtype=np.int8), "e": np.zeros(0)}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file(TENSORS, path, metadata={"format": "pt"})
    return path


def metadata(path):
    with safe_open(path, "np") as file:
        return file.metadata() or {}


def data(path):
    """The bytes of all tensors, and where in them each is."""
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:start])
    header.pop("__metadata__", None)
    return header, whole[start:]


def same_tensors(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("how", [[], ["--reserve", "4K"], ["--no-sync"]])
def test_what_is_set_is_read_back(weigh, model, how):
    weigh.run("meta", "set", model, "title=A = \u202e\x1b\"\\", "empty=", *how)
    assert metadata(model) == {"format": "pt", "title": "A = \u202e\x1b\"\\", "empty": ""}
    same_tensors(load_file(model), TENSORS)
    weigh.run("meta", "unset", model, "*", *how)
    assert metadata(model) == {}
    same_tensors(load_file(model), TENSORS)


def test_in_place_only_the_header_changes(weigh, model):
    weigh.run("meta", "set", model, "k=v", "--reserve", "1K")
    before = model.stat()
    weigh.run("meta", "set", model, "k=" + "w" * 500, "--in-place")
    assert metadata(model) == {"format": "pt", "k": "w" * 500}
    same_tensors(load_file(model), TENSORS)
    assert (model.stat().st_ino, model.stat().st_size) == (before.st_ino, before.st_size)
    assert os.listdir(model.parent) == [model.name]


def test_what_is_exported_is_imported(weigh, model, tmp_path):
    pairs = {"format": "pt", "ss_tags": json.dumps({"a": [1, 2.5, None]}), "\u2028é": "\x7f"}
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps(pairs))
    weigh.run("meta", "import", model, file, "--replace")
    assert metadata(model) == pairs
    assert weigh.json("meta", "export", model) == pairs
    for key, value in pairs.items():
        assert weigh.run("meta", "get", model, key, "--raw") == value


def test_every_shard_of_a_set(weigh, examples, tmp_path):
    there = tmp_path / "there"
    weigh.run("meta", "set", examples / "tiny", "author=me", "-o", there)
    names = sorted(path.name for path in (examples / "tiny").glob("model*"))
    assert sorted(path.name for path in there.iterdir()) == names
    for path in there.glob("*.safetensors"):
        assert metadata(path)["author"] == "me"
        assert data(path) == data(examples / "tiny" / path.name)
    weigh.run("check", there)


def on_a_terminal(program, arguments, answers, **environment):
    """Runs the program on a terminal of its own and types answers; its exit code and what it showed."""
    pty = pytest.importorskip("pty")
    child, terminal = pty.fork()
    if child == 0:
        os.execve(program, [program, *map(str, arguments)], {**os.environ, **environment})
    os.write(terminal, answers.encode())
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:
        # Linux ends so when the other side has closed.
        pass
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_raw_does_not_act_on_a_terminal(weigh, model):
    weigh.run("meta", "set", model, "safe=two\nlines", "unsafe=\x1b[2J")
    code, shown = on_a_terminal(weigh.program, ["meta", "get", model, "safe", "--raw"], "")
    assert (code, shown) == (0, "two\r\nlines")
    code, shown = on_a_terminal(weigh.program, ["meta", "get", model, "unsafe", "--raw"], "", NO_COLOR="1")
    assert code == 2
    assert "\x1b" not in shown
    assert "a terminal acts on" in shown


@pytest.mark.parametrize(("answers", "code"), [("\n", 0), ("yes\n", 0), ("n\n", 2)])
def test_an_editor_gets_another_chance_on_a_terminal(weigh, model, tmp_path, answers, code):
    editor = tmp_path / "editor.sh"
    editor.write_text(
        """\
if [ -e second ]; then echo '{"k": "mended"}' > "$1"; else echo '{' > "$1"; touch second; fi
"""
    )
    environment = {"VISUAL": f"cd {tmp_path} && sh {editor}", "TMPDIR": str(tmp_path)}
    got, shown = on_a_terminal(weigh.program, ["meta", "edit", model], answers, **environment)
    assert got == code, shown
    assert "EOF while parsing an object at line 2 column 0" in shown
    assert metadata(model) == ({"k": "mended"} if code == 0 else {"format": "pt"})
    # What was typed is kept if it was not written.
    kept = list(tmp_path.glob("weigh-meta-*"))
    assert len(kept) == (0 if code == 0 else 1)
    assert all(str(draft) in shown.replace("\r\n", "") for draft in kept)
