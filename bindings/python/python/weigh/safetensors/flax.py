"""``safetensors.flax``: files of jax arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from weigh.safetensors import numpy
from weigh.safetensors._open import converter, safe_open
from weigh.safetensors._serialize import loaded

__all__ = ["load", "load_file", "numpy", "safe_open", "save", "save_file"]


def save(tensors, metadata=None):
    """A file's content, as ``bytes``. ``tensors`` is a ``dict`` of names and arrays, which is not changed."""
    return numpy.save(_jnp2np(tensors), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    return numpy.save_file(_jnp2np(tensors), filename, metadata=metadata)


def load(data):
    """The arrays of a file's content, ``bytes``, by name."""
    return loaded(data, converter("flax"))


def load_file(filename, *, backend="mmap"):
    """The arrays of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="flax", backend=backend) as file:
        return file.get_tensors()


def _np2jnp(numpy_dict):
    return {name: jnp.array(array) for name, array in numpy_dict.items()}


def _jnp2np(jnp_dict):
    return {name: np.asarray(array) for name, array in jnp_dict.items()}
