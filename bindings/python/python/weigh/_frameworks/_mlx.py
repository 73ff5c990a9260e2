"""mlx: arrays of Apple's framework, which also runs on Linux."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from weigh._frameworks import _numpy

#: Types that mlx has as numpy has them.
_SHARED = frozenset(("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "C64"))


def target(device: Any) -> Any:
    """The device, if mlx has it. Memory is one there: a device is where work is done, not where arrays are."""
    # mlx's own devices can be compared with devices only.
    if not isinstance(device, mx.Device) and device not in (None, "cpu", "gpu"):
        raise ValueError(f"mlx has no device {device!r}")
    return device


def tensor(buffer: Any, device: Any = None) -> Any:
    """An array, copied into mlx's own memory. F64 is one that mlx works with on the CPU only."""
    target(device)
    name = buffer.dtype
    if name == "BF16":
        return mx.array(np.ndarray(buffer.shape, np.uint16, buffer=buffer)).view(mx.bfloat16)
    if name == "F64":
        return mx.array(_numpy.tensor(buffer), dtype=mx.float64)
    if name in _SHARED:
        return mx.array(_numpy.tensor(buffer))
    raise TypeError(f"mlx has no dtype for {name}: load it with numpy")


def entry(name: str, array: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for an array: a copy, whether that is asked for or not."""
    if array.dtype == mx.bfloat16:
        _, _, shape, data = _numpy.entry(name, np.array(array.view(mx.uint16)))
        return name, "BF16", shape, data
    return _numpy.entry(name, np.array(array))
