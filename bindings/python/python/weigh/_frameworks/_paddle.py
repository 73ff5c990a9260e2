"""paddle: tensors on its devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from weigh._frameworks import _numpy

#: Types that paddle has as numpy has them. An array of ``uint16`` is taken for bfloat16 there.
_SHARED = frozenset(("BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "F32", "F64", "C64"))

#: Types that paddle and numpy do not share, with one of the same size that they do.
_VIEWED = {
    "BF16": (np.int16, "bfloat16"),
    "F8_E4M3": (np.uint8, "float8_e4m3fn"),
    "F8_E5M2": (np.uint8, "float8_e5m2"),
}


def target(device: Any) -> Any:
    """The place of paddle: its own object, or what ``"cpu"``, ``"gpu:0"`` or ``"cuda:0"`` names."""
    if isinstance(device, str):
        return paddle.device._convert_to_place(device.replace("cuda", "gpu"))
    return device


def tensor(buffer: Any, device: Any = None) -> Any:
    """A tensor, copied into paddle's own memory."""
    name, place = buffer.dtype, target(device)
    if name in _VIEWED:
        like, own = _VIEWED[name]
        raw = paddle.to_tensor(np.ndarray(buffer.shape, like, buffer=buffer), place=place)
        return raw.view(getattr(paddle, own))
    if name in _SHARED:
        return paddle.to_tensor(_numpy.tensor(buffer), place=place)
    raise TypeError(f"paddle has no dtype for {name}: load it with numpy")


def entry(name: str, value: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for a tensor, in memory that nobody else has if that is asked for."""
    if not value.is_dense():
        raise TypeError(f"{name}: a sparse tensor has to be made dense first")
    own = str(value.dtype).rpartition(".")[2]
    for kind, (like, viewed) in _VIEWED.items():
        if own == viewed:
            raw = value.contiguous().view(getattr(paddle, np.dtype(like).name))
            _, _, shape, data = _numpy.entry(name, raw.numpy(), own)
            return name, kind, shape, data
    return _numpy.entry(name, value.numpy(), own)
