"""Round trips of every dtype between a framework, `weigh.safetensors` and the original: `drop_in_framework.py NAME`.

A program of its own, as not all frameworks can be imported into one process. Prints what differs, a line each.
"""

import importlib
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from drop_in_files import BITS, content_of, file_of_tensors, outcome

warnings.simplefilter("ignore")

#: By framework: the module of `safetensors`, and the names that `safe_open` has for it.
FRAMEWORKS = {
    "numpy": ("numpy", ["np", "numpy"]),
    "torch": ("torch", ["pt", "torch", "pytorch"]),
    "jax": ("flax", ["flax", "jax"]),
    "mlx": ("mlx", ["mlx"]),
    "tensorflow": ("tensorflow", ["tf", "tensorflow"]),
    "paddle": ("paddle", ["paddle"]),
}

#: What a framework has no type for: reading it raises.
UNKNOWN = {
    "numpy": set(),
    "torch": {"F6_E2M3", "F6_E3M2"},
    "jax": {"F6_E2M3", "F6_E3M2"},
    "mlx": {"F4", "F6_E2M3", "F6_E3M2", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"},
    "tensorflow": {"F8_E8M0", "F6_E2M3", "F6_E3M2"},
    "paddle": {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "U16", "U32", "U64"},
}

#: What a framework makes another type of, so that it is not written as it was read.
CHANGED = {
    "jax": {"I64", "U64", "F64"},
    "mlx": {"F64"},
}


#: What the original reads in every way, at least, but for the ways below: with less, little would be compared.
_PLAIN = {"BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "F32", "F64"}
_NUMPYS = _PLAIN | {"U16", "U32", "U64", "C64"}
READ = {
    "numpy": _NUMPYS,
    "torch": set(BITS) - {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0"},
    "jax": _NUMPYS,
    "mlx": _NUMPYS,
    "tensorflow": _NUMPYS,
    "paddle": _PLAIN,
}
UNREAD = {"paddle pread"}


def described(framework, tensor):
    """The kind, dtype, shape and bytes of a tensor."""
    kind, shape, dtype = type(tensor).__name__, list(tensor.shape), str(tensor.dtype)
    if framework == "torch":
        import torch

        content = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""
    elif framework == "mlx":
        import mlx.core as mx

        content = np.asarray(tensor.view(mx.uint16) if tensor.dtype == mx.bfloat16 else tensor).tobytes()
    elif framework in ("tensorflow", "paddle"):
        content = tensor.numpy().tobytes()
    else:
        content = np.asarray(tensor).tobytes()
    return kind, dtype, shape, content


def compare(framework, folder):
    suffix, names = FRAMEWORKS[framework]
    theirs, ours = importlib.import_module("safetensors"), importlib.import_module("weigh.safetensors")
    their_module = importlib.import_module(f"safetensors.{suffix}")
    our_module = importlib.import_module(f"weigh.safetensors.{suffix}")
    compared = set()
    for dtype in BITS:
        for shape in ([], [8], [2, 3, 4], [0], [3, 0]):
            elements = int(np.prod(shape, dtype=np.int64))
            if elements * BITS[dtype] % 8 or (dtype == "F4" and not shape):
                continue
            what = f"{framework} {dtype} {shape}"
            content = file_of_tensors({"t": (dtype, shape, content_of(dtype, elements))})
            path = folder / "model.safetensors"
            path.write_bytes(content)
            own_path = folder / "again.safetensors"
            reads = {"load": (lambda it: it.load(content)["t"]), "load_file": (lambda it: it.load_file(path)["t"])}
            for name in names:
                for backend in ("mmap", "pread"):
                    reads[f"{name} {backend}"] = lambda it, name=name, backend=backend: _opened(
                        theirs if it is their_module else ours, path, name, backend
                    )
            own = None
            for read, call in reads.items():
                (expected, refusal), (got, own_refusal) = outcome(call, their_module), outcome(call, our_module)
                if dtype in UNKNOWN.get(framework, ()):
                    if not isinstance(own_refusal, ours.SafetensorError):
                        yield f"{what} {read}: not refused: {own_refusal!r}"
                    continue
                if own_refusal is not None:
                    yield f"{what} {read}: {own_refusal!r}, original: {refusal!r}"
                    continue
                own = got
                if refusal is not None:
                    continue
                compared.add((read, dtype))
                if described(framework, got) != described(framework, expected):
                    yield f"{what} {read}: {described(framework, got)} {described(framework, expected)}"
            if own is None or dtype in CHANGED.get(framework, ()):
                continue
            written, refusal = outcome(our_module.save, {"t": own}, {"k": "v"})
            if refusal is not None:
                yield f"{what} save: {refusal!r}"
                continue
            tensors = theirs.deserialize(written)
            if (tensors[0][1]["dtype"], tensors[0][1]["shape"], bytes(tensors[0][1]["data"])) != (
                dtype,
                shape,
                content_of(dtype, elements),
            ):
                yield f"{what} save: {tensors}"
            expected, refusal = outcome(their_module.save, {"t": own}, {"k": "v"})
            if refusal is None and expected != written:
                yield f"{what} save: {written} {expected}"
            our_module.save_file({"t": own}, own_path, {"k": "v"})
            if own_path.read_bytes() != written:
                yield f"{what} save_file: {own_path.read_bytes()} {written}"
    for read, dtype in sorted({(read, dtype) for read in set(reads) - UNREAD for dtype in READ[framework]} - compared):
        yield f"{framework} {dtype} {read}: not compared"


def _opened(module, path, framework, backend):
    with module.safe_open(path, framework, backend=backend) as file:
        return file.get_tensor("t")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for line in compare(sys.argv[1], Path(temporary)):
            print(line)
