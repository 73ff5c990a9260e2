"""What type checkers are told: it is what is there, and a program that uses it is accepted."""

import ast
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import weigh
from weigh import _checkpoint, _save, _weigh

PACKAGE = Path(weigh.__file__).parent

#: The modules of the drop-in that are typed, and what has to be there for them.
DROP_IN = {
    "weigh.safetensors.numpy": "numpy",
    "weigh.safetensors.torch": "torch",
    "weigh.safetensors.flax": "jax",
    "weigh.safetensors.mlx": "mlx",
    "weigh.safetensors.tensorflow": "tensorflow",
    "weigh.safetensors.paddle": "paddle",
}

# What the frameworks say of their types is theirs, and takes minutes to read.
FRAMEWORKS = "[mypy-torch.*,numpy.*,jax.*,mlx.*,tensorflow.*,paddle.*]\nfollow_imports = skip\n"

SETTINGS = f"[mypy]\nstrict = true\ndisable_error_code = import-untyped, import-not-found\n{FRAMEWORKS}"

# What is so of every type, or of names that stand for types.
ALLOWED = """
weigh._weigh.Buffer.__buffer__
weigh._save.Layout
"""

SAMPLE = '''
import io
import mmap
import os
from pathlib import Path
from typing import BinaryIO

import weigh


def sizes(path: Path) -> dict[str, int]:
    with weigh.open(path, strict=True) as checkpoint:
        return {name: tensor.nbytes for name, tensor in checkpoint.items()}


def first_row(checkpoint: weigh.Checkpoint, name: str) -> weigh.Tensor:
    return checkpoint[name][0, ..., 2:-1:-1]


def names(checkpoint: weigh.Checkpoint) -> list[str]:
    for name, tensor in checkpoint.stream("*", budget=1 << 20, order="given", pieces=True):
        if isinstance(tensor, weigh.Piece):
            print(tensor.start, tensor.stop, tensor.is_last, tensor.shape)
    return checkpoint.select(["a", "b.*"], exclude="c")


def write(path: str | os.PathLike[str]) -> list[str]:
    def tell(done: int, total: int) -> None:
        print(done, total)

    weigh.save({"w": object()}, path, metadata={"a": "b"}, progress=tell)
    pending: weigh.Pending = weigh.save_async({"w": object()}, path, max_shard_size="5GB")
    return pending.wait(3.0)


def send(tensors: dict[str, object], stream: BinaryIO) -> int:
    content = io.BytesIO()
    weigh.save(tensors, content)
    weigh.save(tensors, stream)
    weigh.save(tensors, "memory://x", replace=False)
    return len(weigh.load(content, strict=True, max_header=1 << 20, dtype="F32", overcommit=True))


def mapped(file: BinaryIO) -> weigh.Checkpoint:
    return weigh.open(mmap.mmap(file.fileno(), 0))


def findings(path: bytes) -> list[str]:
    try:
        loaded = weigh.load(path, ["w"], framework="torch", device="cuda:0")
        print(loaded["w"], len(weigh.to_bytes({})))
        return [f"{finding.code}: {finding.span}" for finding in weigh.check(path)]
    except weigh.TensorNotFoundError as error:
        return [error.code]
    except weigh.WeighError as error:
        return [error.help or ""] + [finding.message for finding in error.findings]
'''

DROP_IN_SAMPLE = '''
from pathlib import Path

import torch

from weigh import safetensors
from weigh.safetensors import SafetensorError, safe_open
from weigh.safetensors.numpy import save
from weigh.safetensors.torch import load_file, load_model, save_file, save_model


def names(path: str | Path) -> list[str]:
    with safe_open(path, framework="pt", device="cuda:0", backend="pread") as file:
        metadata: dict[str, str] | None = file.metadata()
        shape: list[int] = file.get_slice("a").get_shape()
        with file.prefetch({"a": slice(0, 3), "b": None}, threads=2) as loader:
            for name, tensor in loader:
                print(name, tensor, len(loader), loader.take("a"))
        print(metadata, shape, file.get_tensor("a")[0], file.get_tensor_meta("a").data_offsets)
        return file.keys() + sorted(file.get_tensors())


def copied(path: Path, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    tensors = load_file(path, device=0)
    save_file(tensors, path, metadata={"format": "pt"})
    save_model(model, path)
    missing, unexpected = load_model(model, path, strict=False)
    print(missing | {"a"}, unexpected + ["b"], len(save({})))
    return tensors


def code() -> str | None:
    try:
        with safetensors.install() as module:
            print(module.__name__, safetensors.__version__)
            spec = safetensors.TensorSpec(dtype="int8", shape=[1], data_ptr=1, data_len=1)
            return safetensors.deserialize(safetensors.serialize({"a": spec}))[0][0]
    except SafetensorError as error:
        return error.help or error.code + "".join(finding.message for finding in error.findings)
    finally:
        safetensors.uninstall()
'''

# Each of these is a mistake, and a type checker has to say so.
MISTAKES = [
    'weigh.open(3)',
    'weigh.open("x", strict="yes")',
    'weigh.open("x")["w"]["a"]',
    'weigh.open("x").load("w", framwork="torch")',
    'weigh.load("x", framwork="torch")',
    'weigh.load("x", strict="yes")',
    'weigh.save({}, 3)',
    'weigh.save_async({}, open("x", "wb"))',
    'weigh.open("x").stream(order="random")',
    'weigh.open("x")["w"].shape.append(3)',
    'weigh.save([], "x")',
    'weigh.save({}, "x", layout="dense")',
    'weigh.save_async({}, "x").wait("soon")',
    'weigh.nothing',
]

DROP_IN_MISTAKES = [
    'safetensors.safe_open("x")',
    'safetensors.safe_open(b"x", "pt")',
    'safetensors.safe_open("x", "pt", backend="fast")',
    'safetensors.safe_open("x", "pt").keys().items()',
    'safetensors.safe_open("x", "pt").prefetch({"a": 3})',
    'safetensors.TensorSpec("int8", [1], 1, 1)',
    'safetensors.serialize({"a": b"1"})',
    'safetensors.nothing',
    'safetensors.install().nothing',
    'torch.load_file("x", devise="cpu")',
    'torch.load("x")',
    'torch.save([])',
    'torch.nothing',
]


def checked(program, tmp_path, environment):
    settings = tmp_path / "mypy.ini"
    settings.write_text(SETTINGS)
    script = tmp_path / "sample.py"
    script.write_text(program)
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--follow-imports", "silent", str(script)]
    environment = environment | {"MYPYPATH": environment.get("PYTHONPATH", ""), "MYPY_CACHE_DIR": str(tmp_path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)


@pytest.mark.parametrize("program", [SAMPLE, DROP_IN_SAMPLE], ids=["own", "drop-in"])
def test_a_program_that_uses_it_right_is_accepted(program, tmp_path, environment):
    pytest.importorskip("mypy")
    made = checked(program, tmp_path, environment)
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.mark.parametrize(
    ("imported", "mistakes"),
    [
        ("import weigh", MISTAKES),
        ("from weigh import safetensors; from weigh.safetensors import torch", DROP_IN_MISTAKES),
    ],
    ids=["own", "drop-in"],
)
def test_mistakes_are_found(imported, mistakes, tmp_path, environment):
    pytest.importorskip("mypy")
    made = checked("\n".join([imported, *mistakes]), tmp_path, environment)
    lines = {int(line.split(":")[1]) for line in made.stdout.splitlines() if "error:" in line}
    assert lines == set(range(2, len(mistakes) + 2)), made.stdout


def compared(modules, allowed, tmp_path, environment):
    (tmp_path / "allowed").write_text(allowed)
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\ndisable_error_code = import-untyped, import-not-found\n{FRAMEWORKS}"
    )
    command = [sys.executable, "-m", "mypy.stubtest", *modules, "--allowlist", "allowed", "--ignore-unused-allowlist"]
    environment = environment | {"MYPYPATH": environment.get("PYTHONPATH", "")}
    made = subprocess.run(
        [*command, "--mypy-config-file", "mypy.ini"], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert made.returncode == 0, made.stdout + made.stderr


def test_stubs_are_what_the_modules_have(tmp_path, environment):
    pytest.importorskip("mypy")
    compared(["weigh._weigh", "weigh._errors", "weigh._checkpoint", "weigh._save"], ALLOWED, tmp_path, environment)


def test_stubs_are_what_the_drop_in_has(tmp_path, environment):
    pytest.importorskip("mypy")
    # Only what is imported from is typed; what cannot be imported is not compared.
    left_out = [r"weigh\.safetensors\._.*"]
    left_out += [f"{module}.*" for module, needed in DROP_IN.items() if importlib.util.find_spec(needed) is None]
    compared(["weigh.safetensors"], "\n".join(left_out), tmp_path, environment)


def test_every_module_of_the_drop_in_that_is_used_is_typed():
    folder = PACKAGE / "safetensors"
    public = {f"weigh.safetensors.{path.stem}" for path in folder.glob("*.py") if not path.name.startswith("_")}
    assert public == set(DROP_IN)
    assert {path.stem for path in folder.glob("*.pyi")} == {
        "__init__" if name == "weigh.safetensors" else name.rpartition(".")[2]
        for name in public | {"weigh.safetensors"}
    }


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    names = [name.asname for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names]
    assert sorted(names) == sorted(weigh.__all__)
    assert set(weigh.__all__) <= set(dir(weigh))


def documented():
    for module in (weigh, _checkpoint, _save, _weigh):
        yield module.__name__, module
    for name in weigh.__all__:
        thing = getattr(weigh, name) if name != "safetensors" else None
        if thing is None or isinstance(thing, str):
            continue
        yield name, thing
        if isinstance(thing, type):
            own = [base for base in thing.__mro__ if base.__module__.startswith("weigh")]
            for member in {member for base in own for member in vars(base) if not member.startswith("_")}:
                value = inspect.getattr_static(thing, member)
                # Attributes with slots are told of in the docstring of their class.
                if inspect.ismemberdescriptor(value):
                    assert f"    {member}:" in thing.__doc__, f"{name}.{member}"
                else:
                    yield f"{name}.{member}", getattr(thing, member)


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one[0]) for one in documented()])
def test_everything_public_has_a_docstring(name, thing):
    assert inspect.getdoc(thing), name
    if inspect.isfunction(thing) and name in weigh.__all__:
        assert "Raises:" in thing.__doc__, name
