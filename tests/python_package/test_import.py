"""Importing: nothing but the package, whatever is installed or is not."""

import subprocess
import sys
from pathlib import Path

import weigh

FRAMEWORKS = ["numpy", "torch", "jax", "mlx", "tensorflow", "paddle", "ml_dtypes"]
HEAVY = [*FRAMEWORKS, "fsspec", "tqdm", "typing", "pathlib", "threading"]


def run(program, environment, *flags):
    if "-S" in flags:
        # Not found without site, where it is installed.
        environment = environment | {"PYTHONPATH": str(Path(weigh.__file__).parents[1])}
    made = subprocess.run([sys.executable, *flags, "-c", program], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_importing_it_imports_no_framework(environment):
    # Without site, in which there may be anything.
    program = f"import sys; before = set(sys.modules); import weigh; print(*(set(sys.modules) - before) & set({HEAVY}))"
    assert run(program, environment, "-S") == ""


def test_files_are_listed_and_checked_without_numpy(environment, write):
    path = write({"w": ("BF16", (2, 2), bytes(8))})
    program = f"""
import sys
sys.modules["numpy"] = None
import weigh
checkpoint = weigh.open({str(path)!r})
print(checkpoint["w"].dtype, checkpoint["w"].shape, checkpoint["w"][0].tobytes().hex())
weigh.check({str(path)!r})
for name, piece in checkpoint.items():
    content = memoryview(piece.read())
weigh.save({{"w": checkpoint["w"]}}, {str(path)!r} + ".copy")
try:
    checkpoint.load()
except ImportError as error:
    print(error)
"""
    lines = run(program, environment, "-S").splitlines()
    assert lines[0] == "BF16 (2, 2) 00000000"
    assert "pip install numpy" in lines[1]
    assert Path(f"{path}.copy").exists()


def test_everything_public_is_there():
    for name in weigh.__all__:
        if name != "safetensors":
            assert getattr(weigh, name) is getattr(weigh, name)
    try:
        weigh.nothing
    except AttributeError as error:
        assert "nothing" in str(error)
    assert weigh.__version__.count(".") == 2


def test_the_module_is_the_program(environment, write):
    path = write({"a.weight": ("U8", (2,), b"ab")})
    command, options = [sys.executable, "-m", "weigh", "ls"], {"env": environment, "capture_output": True, "text": True}
    made = subprocess.run([*command, str(path)], **options)
    assert made.returncode == 0 and "a.weight" in made.stdout
    made = subprocess.run([*command, f"{path}.none"], **options)
    assert made.returncode != 0 and "no such file" in made.stderr
