"""`install` and `python -m weigh run`: programs that import `safetensors` get `weigh.safetensors`."""

import importlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drop_in_files import file_of_tensors
from weigh import safetensors as ours


def python(*arguments, **options):
    """Runs Python."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_context_makes_the_name_mean_ours_and_back():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "safetensors"}
    with ours.install() as installed:
        assert installed is ours
        import safetensors
        from safetensors import SafetensorError, safe_open
        from safetensors._safetensors_rust import TensorSpec

        assert safetensors is ours
        assert (safe_open, SafetensorError, TensorSpec) == (ours.safe_open, ours.SafetensorError, ours.TensorSpec)
        assert importlib.metadata.version("safetensors") == safetensors.__version__ == "0.8.0"
        assert importlib.util.find_spec("safetensors") is not None
        assert ours.__name__ == "weigh.safetensors" and ours.__spec__.name == "weigh.safetensors"
    after = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "safetensors"}
    assert after == before


def test_submodules_are_ours_and_stay_themselves():
    pytest.importorskip("numpy")
    own = importlib.import_module("weigh.safetensors.numpy")
    with ours.install():
        import safetensors.numpy
        from safetensors.numpy import load_file

        assert safetensors.numpy is own and load_file is own.load_file
        assert (own.__name__, own.__spec__.name) == ("weigh.safetensors.numpy", "weigh.safetensors.numpy")
        with pytest.raises(ImportError):
            importlib.import_module("safetensors.nope")


def entered(installation):
    installation.__enter__()


def left(installation):
    installation.__exit__(None, None, None)


#: What is done in turn with installations that are made in turn, ``a`` and ``b``, and whether the name means ours then.
NESTED = {
    "one in another": [("a", True), ("b", True), ("leave b", True), ("leave a", False)],
    "one left before the other, as by two threads": [("a", True), ("b", True), ("leave a", True), ("leave b", False)],
    "a context after a call": [("call", True), ("a", True), ("leave a", True), ("uninstall", False)],
    "a call in a context": [("a", True), ("call", True), ("leave a", True), ("uninstall", False)],
    "two calls": [("call", True), ("call", True), ("uninstall", False), ("uninstall", False)],
    "all undone in a context": [("a", True), ("uninstall", False), ("leave a", False)],
    "undone and done again in a context": [
        ("a", True),
        ("uninstall", False),
        ("b", True),
        ("leave a", True),
        ("leave b", False),
    ],
    "left twice": [("a", True), ("b", True), ("leave a", True), ("leave a", True), ("leave b", False)],
    "undone and called": [("a", True), ("uninstall", False), ("call", True), ("leave a", True), ("uninstall", False)],
    "nothing to undo": [("uninstall", False), ("a", True), ("leave a", False)],
}


@pytest.mark.parametrize("nesting", NESTED)
def test_the_name_means_ours_until_the_last_installation_is_undone(nesting):
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "safetensors"}
    finders, made = list(sys.meta_path), {}
    try:
        for step, is_ours in NESTED[nesting]:
            if step == "uninstall":
                ours.uninstall()
            elif step == "call":
                ours.install()
            elif step.startswith("leave "):
                left(made[step.removeprefix("leave ")])
            else:
                made[step] = ours.install()
                entered(made[step])
            assert (sys.modules.get("safetensors") is ours) == is_ours, step
            assert len(sys.meta_path) == len(finders) + is_ours, step
    finally:
        ours.uninstall()
    assert sys.meta_path == finders
    assert before == {
        name: module for name, module in sys.modules.items() if name.partition(".")[0] == "safetensors"
    }


def test_an_installation_that_was_undone_is_not_entered():
    for undo in (left, lambda _: ours.uninstall()):
        installation = ours.install()
        undo(installation)
        with pytest.raises(RuntimeError, match="call install"):
            entered(installation)


def test_an_exception_that_leaves_a_context_undoes_it():
    with pytest.raises(ZeroDivisionError), ours.install():
        raise ZeroDivisionError
    assert sys.modules.get("safetensors") is not ours


def test_installations_of_many_threads_leave_nothing_behind():
    finders, failures = list(sys.meta_path), []

    def work():
        for _ in range(50):
            with ours.install():
                if importlib.import_module("safetensors") is not ours:
                    failures.append("not ours")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and sys.meta_path == finders and sys.modules.get("safetensors") is not ours


ALONE = """
import importlib.metadata, importlib.util, sys
assert importlib.util.find_spec("safetensors") is None
import weigh.safetensors
weigh.safetensors.install()
import safetensors
assert importlib.metadata.version("safetensors") == "0.8.0"
assert importlib.metadata.distribution("safetensors").metadata["Name"] == "safetensors"
assert "safetensors" in importlib.metadata.packages_distributions()
assert not {"numpy", "torch"} & set(sys.modules)
weigh.safetensors.uninstall()
assert importlib.util.find_spec("safetensors") is None
print("done")
"""


def test_without_any_other_package_the_name_the_version_and_its_listing_are_there():
    alone = os.environ.get("WEIGH_ALONE")
    if alone:
        ended = subprocess.run([alone, "-c", ALONE], capture_output=True, text=True, check=False)
    else:
        # Without site-packages.
        home = str(Path(ours.__file__).parents[2])
        ended = python("-S", "-c", ALONE, env=os.environ | {"PYTHONPATH": home})
    assert (ended.stdout, ended.returncode) == ("done\n", 0), ended.stderr


PROGRAM = """
import sys
import beside
from safetensors import safe_open

class Pickled:
    pass

if __name__ == "__main__":
    import pickle
    assert type(pickle.loads(pickle.dumps(Pickled()))) is Pickled
    print(safe_open.__module__, sys.argv, __file__, beside.HERE, __name__, sys.path[0], sep="|")
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "of a program"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "beside.py").write_text("HERE = 'beside'\n")
    return folder


def test_a_program_runs_as_it_would_by_itself_with_our_package(folder):
    program = folder / "program.py"
    ended = python("-m", "weigh", "run", program, "7", "-x")
    argv = [str(program), "7", "-x"]
    assert ended.stdout == f"weigh.safetensors|{argv}|{program}|beside|__main__|{folder}\n", ended.stderr
    assert ended.returncode == 7


def test_a_module_runs_as_it_would_by_itself_with_our_package(folder):
    ended = python("-m", "weigh", "run", "-m", "program", "0", "b", cwd=folder)
    where = folder / "program.py"
    expected = f"weigh.safetensors|{[str(where), '0', 'b']}|{where}|beside|__main__|{folder}\n"
    assert (ended.stdout, ended.returncode) == (expected, 0), ended.stderr


def test_an_exception_ends_a_program_as_it_does_by_itself(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import safetensors\nraise ValueError('what it says')\n")
    ended = python("-m", "weigh", "run", program)
    assert ended.returncode == 1
    assert ended.stderr.endswith("ValueError: what it says\n")
    assert f'File "{program}", line 2' in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "usage: python -m weigh run"),
        (["-x"], 2, "usage: python -m weigh run"),
        (["-m"], 2, "usage: python -m weigh run"),
        (["nope.py"], 2, "can't open file 'nope.py'"),
        (["--help"], 0, ""),
    ],
)
def test_what_cannot_be_run_is_said(arguments, code, said):
    ended = python("-m", "weigh", "run", *arguments)
    assert ended.returncode == code
    assert said in ended.stderr


TRANSFORMERS = """
import sys
import safetensors, torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
torch.save((safetensors.__name__, model.state_dict()), sys.argv[2])
model.save_pretrained(sys.argv[3], max_shard_size="50KB")
"""


@pytest.mark.parametrize("max_shard_size", ["5GB", "50KB"])
def test_transformers_loads_and_saves_the_same_weights(max_shard_size, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("safetensors", minversion="0.8")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=199, n_positions=64)
    model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(tmp_path / "model", max_shard_size=max_shard_size)
    assert (len(list((tmp_path / "model").glob("*.safetensors"))) > 1) == (max_shard_size == "50KB")
    program = tmp_path / "program.py"
    program.write_text(TRANSFORMERS)
    read = {}
    for way in ([], ["-m", "weigh", "run"]):
        name = "weigh.safetensors" if way else "safetensors"
        paths = [tmp_path / f"{name}.pt", tmp_path / name]
        ended = python(*way, program, tmp_path / "model", *paths)
        assert ended.returncode == 0, ended.stderr
        package, read[name] = torch.load(paths[0])
        assert package == name
    expected, got = read["safetensors"], read["weigh.safetensors"]
    assert expected.keys() == got.keys() == model.state_dict().keys()
    for key, tensor in expected.items():
        assert torch.equal(got[key], tensor) and got[key].dtype == tensor.dtype, key
    # What the two wrote is the same, byte for byte.
    files = sorted(path.name for path in (tmp_path / "safetensors").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "weigh.safetensors").iterdir())
    for name in files:
        both = [(tmp_path / package / name).read_bytes() for package in read]
        assert both[0] == both[1], name


def test_a_program_is_refused_in_the_words_that_it_looks_for(tmp_path):
    path, program = tmp_path / "model.safetensors", tmp_path / "program.py"
    path.write_bytes(file_of_tensors({"a": ("U8", [3], b"abc")})[:-1])
    program.write_text(
        f"import safetensors\ntry:\n    safetensors.safe_open({str(path)!r}, 'np')\n"
        "except safetensors.SafetensorError as e:\n    print('MetadataIncompleteBuffer' in e.args[0])\n"
    )
    assert python("-m", "weigh", "run", program).stdout == "True\n"
