"""paddle: tensors on its devices."""

from __future__ import annotations

import numpy as np
import paddle

from weigh._frameworks import _numpy

#: Types that paddle has and numpy has not, with one of the same size that both have.
_VIEWED = {
    "BF16": (np.uint16, "bfloat16"),
    "F8_E4M3": (np.uint8, "float8_e4m3fn"),
    "F8_E5M2": (np.uint8, "float8_e5m2"),
}


def tensor(buffer, device=None):
    """A tensor, copied into paddle's own memory."""
    place = None if device is None else _place(device)
    name = buffer.dtype
    if name in _VIEWED:
        like, own = _VIEWED[name]
        raw = paddle.to_tensor(np.ndarray(buffer.shape, like, buffer=buffer), place=place)
        return raw if str(raw.dtype).endswith(own) else raw.view(getattr(paddle, own))
    return paddle.to_tensor(_numpy.tensor(buffer), place=place)


def _place(device):
    if not isinstance(device, str):
        return device
    return paddle.device._convert_to_place(device.replace("cuda", "gpu"))


def entry(name, value):
    """What is written for a tensor."""
    own = str(value.dtype).rpartition(".")[2]
    for kind, (like, viewed) in _VIEWED.items():
        if own == viewed:
            raw = value.view(paddle.uint8 if like is np.uint8 else paddle.uint16 if hasattr(paddle, "uint16") else paddle.int16)
            _, _, shape, data = _numpy.entry(name, raw.numpy())
            return name, kind, list(value.shape), data
    return _numpy.entry(name, value.numpy())
