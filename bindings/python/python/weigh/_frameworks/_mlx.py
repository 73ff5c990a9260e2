"""mlx: arrays of Apple's framework, which also runs on Linux."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from weigh._frameworks import _numpy

#: Types that mlx has and numpy has not, with one of the same size that both have.
_VIEWED = {"BF16": (np.uint16, mx.bfloat16)}


def tensor(buffer, device=None):
    """An array, copied into mlx's own memory."""
    if device not in (None, "cpu", "gpu") and not isinstance(device, mx.Device):
        raise ValueError(f"mlx has no device {device!r}")
    name = buffer.dtype
    if name in _VIEWED:
        like, own = _VIEWED[name]
        return mx.array(np.ndarray(buffer.shape, like, buffer=buffer)).view(own)
    if name in _numpy._OWN and name != "F64":
        return mx.array(_numpy.tensor(buffer))
    raise TypeError(f"mlx has no dtype for {name}")


def entry(name, array):
    """What is written for an array."""
    if array.dtype == mx.bfloat16:
        raw = np.array(array.view(mx.uint16))
        _, _, shape, data = _numpy.entry(name, raw)
        return name, "BF16", shape, data
    return _numpy.entry(name, np.array(array))
