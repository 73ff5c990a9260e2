"""torch: tensors that own a count of the memory they were read into, each with a storage of its own."""

from __future__ import annotations

import torch
from torch.utils.dlpack import from_dlpack as _from_dlpack

#: The types that DLPack and torch agree on.
_DLPACK = frozenset(("BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64", "C64"))

DTYPES = {
    name: getattr(torch, own)
    for name, own in (
        ("BOOL", "bool"),
        ("U8", "uint8"),
        ("I8", "int8"),
        ("U16", "uint16"),
        ("I16", "int16"),
        ("U32", "uint32"),
        ("I32", "int32"),
        ("U64", "uint64"),
        ("I64", "int64"),
        ("F16", "float16"),
        ("BF16", "bfloat16"),
        ("F32", "float32"),
        ("F64", "float64"),
        ("C64", "complex64"),
        ("F8_E4M3", "float8_e4m3fn"),
        ("F8_E5M2", "float8_e5m2"),
        ("F8_E8M0", "float8_e8m0fnu"),
        ("F8_E4M3FNUZ", "float8_e4m3fnuz"),
        ("F8_E5M2FNUZ", "float8_e5m2fnuz"),
        # Two elements a byte: the last dimension is half as long.
        ("F4", "float4_e2m1fn_x2"),
    )
    if hasattr(torch, own)
}

NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tensor(buffer, device=None):
    """A tensor with the buffer's memory, or a copy of it on another device."""
    name = buffer.dtype
    if name in _DLPACK:
        made = _from_dlpack(buffer.capsule())
    else:
        made = _viewed(buffer, name)
    if device is None or device == "cpu":
        return made
    return to_device(made, device)


def _viewed(buffer, name):
    dtype = DTYPES.get(name)
    if dtype is None:
        raise TypeError(f"torch has no dtype for {name}")
    shape = list(buffer.shape)
    if name == "F4":
        if not shape or shape[-1] % 2:
            raise ValueError(f"torch has F4 two by two: the last dimension of {shape} has to be even")
        shape[-1] //= 2
    raw = torch.empty(0, dtype=torch.uint8) if buffer.nbytes == 0 else _bytes(buffer)
    return raw.view(dtype).reshape(shape)


def _bytes(buffer):
    return torch.frombuffer(buffer, dtype=torch.uint8)


def to_device(made, device):
    """A copy on a device. For CUDA see `weigh._frameworks._cuda`."""
    return made.to(device)


def entry(name, value):
    """What is written for a tensor: its own memory if its elements lie in order, else a copy's."""
    if value.layout != torch.strided:
        raise TypeError(f"{name}: a tensor of layout {value.layout} has to be made dense first")
    kind = NAMES.get(value.dtype)
    if kind is None:
        raise TypeError(f"{name}: the format has no dtype for {value.dtype}")
    value = value.detach()
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    value = value.to("cpu").contiguous()
    shape = list(value.shape)
    if kind == "F4":
        if not shape:
            raise TypeError(f"{name}: F4 needs a dimension")
        shape[-1] *= 2
    return name, kind, shape, Bytes(value)


class Bytes(tuple):
    """The address and the length of a tensor's memory, which lives as long as this."""

    def __new__(cls, value):
        made = super().__new__(cls, (value.data_ptr(), value.numel() * value.element_size()))
        made.owner = value
        return made
