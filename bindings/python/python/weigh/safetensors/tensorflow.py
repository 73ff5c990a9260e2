"""``safetensors.tensorflow``: files of tensorflow tensors."""

from __future__ import annotations

import tensorflow as tf

from weigh.safetensors import numpy
from weigh.safetensors._open import converter, safe_open
from weigh.safetensors._serialize import loaded

__all__ = ["load", "load_file", "numpy", "safe_open", "save", "save_file"]


def save(tensors, metadata=None):
    """A file's content, as ``bytes``. ``tensors`` is a ``dict`` of names and tensors, which is not changed."""
    return numpy.save(_tf2np(tensors), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    return numpy.save_file(_tf2np(tensors), filename, metadata=metadata)


def load(data):
    """The tensors of a file's content, ``bytes``, by name."""
    return loaded(data, converter("tensorflow"))


def load_file(filename, *, backend="mmap"):
    """The tensors of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="tf", backend=backend) as file:
        return file.get_tensors()


def _np2tf(numpy_dict):
    return {name: tf.convert_to_tensor(array) for name, array in numpy_dict.items()}


def _tf2np(tf_dict):
    return {name: tensor.numpy() for name, tensor in tf_dict.items()}
