"""Other processes: forked after files were read, and those of a pool, forked or started anew."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from drop_in_files import content_of, file_of_tensors

pytest.importorskip("numpy")

#: Ways to read the sum of a file's bytes, all of its tensors being of bytes: expressions of a path.
WAYS = {
    "the own interface": "sum(int(it.sum()) for it in weigh.load(path).values())",
    "a stream": "sum(int(it.sum()) for _, it in weigh.open(path).stream())",
    "views that are read by themselves": "sum(sum(it.tobytes()) for it in weigh.open(path).values())",
    "numpy's module": "sum(int(it.sum()) for it in numpy.load_file(path).values())",
    "an open file": "sum(int(it.sum()) for it in ours.safe_open(path, 'np').get_tensors().values())",
    "content in memory": "sum(int(it.sum()) for it in numpy.load(open(path, 'rb').read()).values())",
    "written and read": "written(path)",
    # torch's own sum of many elements never ends in a process that was forked after one.
    "torch's module, mapped": "sum(int(it.numpy().sum()) for it in torch().load_file(path).values())",
    "torch's module, read": "sum(int(it.numpy().sum()) for it in torch().load_file(path, backend='pread').values())",
    "in the background": "sum(int(it.numpy().sum()) for _, it in ours.safe_open(path, 'pt').prefetch())",
}

PROGRAM = """
import importlib, os, sys
import weigh
from weigh import safetensors as ours
from weigh.safetensors import numpy

def torch():
    return importlib.import_module("weigh.safetensors.torch")

def written(path):
    own = f"{path}.{os.getpid()}"
    tensors = numpy.load_file(path)
    numpy.save_file(tensors, own)
    weigh.save(tensors, own + ".too")
    return sum(int(it.sum()) for it in weigh.load(own + ".too").values()) * (
        open(own, "rb").read()[-9:] == open(path, "rb").read()[-9:]
    )

def total(path):
    return WAY
"""

FORKED = """
path = sys.argv[1]
opened, file = weigh.open(path), ours.safe_open(path, "np")
print(total(path), flush=True)
for _ in range(3):
    child = os.fork()
    if child == 0:
        # What was opened before is read too, while the parent does.
        same = sum(int(it.sum()) for it in opened.load().values()) == sum(
            int(it.sum()) for it in file.get_tensors().values()
        )
        print(total(path) if same else "not the same", flush=True)
        os._exit(0)
    total(path)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""

POOLED = """
import multiprocessing

if __name__ == "__main__":
    path, method = sys.argv[1:]
    print(total(path))
    with multiprocessing.get_context(method).Pool(2) as pool:
        for found in pool.map(total, [path] * 8, chunksize=1):
            print(found)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    sizes = [3, 100_000, 0, 3 << 20, 9]
    tensors = {f"w{number}": ("U8", [size], content_of("U8", size)) for number, size in enumerate(sizes)}
    path.write_bytes(file_of_tensors(tensors))
    return path, sum(sum(content) for _, _, content in tensors.values())


def lines(program, way, tmp_path, *arguments):
    if "torch" in way or "background" in way:
        pytest.importorskip("torch")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("WAY", WAYS[way]) + program)
    command = [sys.executable, str(script), *map(str, arguments)]
    # One that hangs is one that fails.
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("way", WAYS)
def test_a_forked_process_reads_as_the_one_that_it_is_of(way, file, tmp_path):
    path, total = file
    assert lines(FORKED, way, tmp_path, path) == [str(total)] * 4


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("way", ["the own interface", "numpy's module", "torch's module, mapped"])
def test_the_processes_of_a_pool_read_as_the_one_that_made_them(way, method, file, tmp_path):
    path, total = file
    assert lines(POOLED, way, tmp_path, path, method) == [str(total)] * 9


INSTALLED = """
import multiprocessing, sys
from safetensors.numpy import load_file

def total(path):
    return load_file.__module__, sum(int(it.sum()) for it in load_file(path).values())

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(*pool.map(total, [sys.argv[1]] * 4, chunksize=1))
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_process_has_what_is_installed(file, tmp_path):
    path, total = file
    script = tmp_path / "program.py"
    script.write_text(INSTALLED)
    command = [sys.executable, "-m", "weigh", "run", str(script), str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.stdout == " ".join([str(("weigh.safetensors.numpy", total))] * 4) + "\n", ended.stderr
