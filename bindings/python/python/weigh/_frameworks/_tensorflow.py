"""tensorflow: constant tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from weigh._frameworks import _numpy

#: Types that tensorflow has not, though ml_dtypes has.
_MISSING = frozenset(("F8_E8M0", "F6_E2M3", "F6_E3M2"))


def target(device: Any) -> Any:
    """The device as tensorflow names it; ``"cuda:1"`` is ``"gpu:1"`` there."""
    if isinstance(device, str) and device.startswith("cuda"):
        return "gpu" + device[len("cuda") :]
    return device


def tensor(buffer: Any, device: Any = None) -> Any:
    """A tensor, copied into tensorflow's own memory."""
    name = buffer.dtype
    if name in _MISSING:
        raise TypeError(f"tensorflow has no dtype for {name}: load it with numpy")
    array = _numpy.tensor(buffer)
    device = target(device)
    if device is None:
        return tf.convert_to_tensor(array)
    with tf.device(device):
        return tf.convert_to_tensor(array)


def entry(name: str, value: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for a tensor or a variable, in memory that nobody else has if that is asked for."""
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        raise TypeError(f"{name}: a {type(value).__name__} has to be made dense first")
    if not hasattr(value, "numpy"):
        raise TypeError(f"{name}: a tensor of a graph has no values: write it when it is run")
    return _numpy.entry(name, value.numpy(), own)
