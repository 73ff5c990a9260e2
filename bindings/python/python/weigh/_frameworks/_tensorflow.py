"""tensorflow: constant tensors."""

from __future__ import annotations

import tensorflow as tf

from weigh._frameworks import _numpy


def tensor(buffer, device=None):
    """A tensor, copied into tensorflow's own memory."""
    array = _numpy.tensor(buffer)
    if device is None or device == "cpu":
        return tf.convert_to_tensor(array)
    with tf.device(device):
        return tf.convert_to_tensor(array)


def entry(name, value):
    """What is written for a tensor or a variable."""
    return _numpy.entry(name, value.numpy())
