"""``safetensors.mlx``: files of mlx arrays."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from weigh._frameworks import _numpy
from weigh.safetensors import numpy
from weigh.safetensors._open import converter, safe_open
from weigh.safetensors._serialize import loaded

__all__ = ["load", "load_file", "numpy", "safe_open", "save", "save_file"]


def save(tensors, metadata=None):
    """A file's content, as ``bytes``. ``tensors`` is a ``dict`` of names and arrays."""
    return numpy.save(_mx2np(tensors), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    return numpy.save_file(_mx2np(tensors), filename, metadata=metadata)


def load(data):
    """The arrays of a file's content, ``bytes``, by name."""
    return loaded(data, converter("mlx"))


def load_file(filename, *, backend="mmap"):
    """The arrays of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="mlx", backend=backend) as file:
        return file.get_tensors()


def _np2mx(numpy_dict):
    return {name: mx.array(array) for name, array in numpy_dict.items()}


def _mx2np(mx_dict):
    return {name: _array(array) for name, array in mx_dict.items()}


def _array(array):
    if isinstance(array, mx.array) and array.dtype == mx.bfloat16:
        return np.asarray(array.view(mx.uint16)).view(_numpy.dtype_of("BF16"))
    return np.asarray(array)
