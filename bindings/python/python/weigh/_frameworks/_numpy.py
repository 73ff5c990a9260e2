"""numpy: arrays that look at a buffer where it is."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

#: The types of numpy's own.
_OWN = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("<u1"),
    "I8": np.dtype("<i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
}

#: The types of ml_dtypes. Those of under 8 bits take a byte an element there.
_OTHER = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F4": "float4_e2m1fn",
}

_dtypes: dict[str, Any] = dict(_OWN)

#: The dtypes of the format, by the names of numpy's types.
_NAMES = {dtype.newbyteorder("=").name: name for name, dtype in _OWN.items()} | {
    other: name for name, other in _OTHER.items()
}

_PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


def dtype_of(name: str) -> Any:
    """The numpy type of a dtype of the format."""
    dtype = _dtypes.get(name)
    if dtype is None:
        try:
            import ml_dtypes
        except ImportError as error:
            raise ImportError(f"{name} in numpy needs ml_dtypes: pip install ml_dtypes") from error
        dtype = _dtypes[name] = np.dtype(getattr(ml_dtypes, _OTHER[name]))
    return dtype


def target(device: Any) -> Any:
    """The device, if numpy has it."""
    if device not in (None, "cpu"):
        raise ValueError(f"numpy has no device {device!r}: give framework=")
    return device


def tensor(buffer: Any, device: Any = None) -> Any:
    """An array that looks at the buffer; of elements of under 8 bits, a copy with a byte for each."""
    target(device)
    name = buffer.dtype
    dtype = dtype_of(name)
    if name in _PACKED:
        codes = unpack(np.ndarray((buffer.nbytes,), np.uint8, buffer=buffer), _PACKED[name])
        return codes.view(dtype).reshape(buffer.shape)
    return np.ndarray(buffer.shape, dtype, buffer=buffer)


def entry(name: str, given: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for an array: its own bytes if they lie in order, else those of a copy.

    Args:
        own: whether they have to be those of a copy.
    """
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{name}: an array with a mask cannot be written: fill it first, with .filled()")
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise TypeError(f"{name}: a {type(given).__name__} is no tensor: {error}") from None
    if array.dtype.hasobject and not isinstance(given, np.ndarray):
        raise TypeError(f"{name}: a {type(given).__name__} is no tensor")
    kind = _NAMES.get(array.dtype.name)
    if kind is None:
        raise TypeError(f"{name}: the format has no dtype for {array.dtype}: convert it first, with .astype()")
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    shape = array.shape
    # Of no dimensions it would become one of one.
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if kind not in _PACKED:
        return name, kind, shape, copied(flat) if own and not _is_copy(flat, given) else flat
    try:
        return name, kind, shape, pack(flat, _PACKED[kind])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def copied(flat: Any) -> Any:
    """Memory with the same bytes. The interpreter's lock is free while they are copied."""
    made = np.empty_like(flat)
    np.copyto(made, flat)
    return made


def _is_copy(made: Any, given: Any) -> bool:
    """Whether nothing else can have the memory of an array that was made of what was given."""
    return isinstance(given, np.ndarray) and not np.may_share_memory(made, given)


def unpack(packed: Any, bits: int) -> Any:
    """One byte for each element of so many bits, which are packed from the low bits of a byte up."""
    if bits == 4:
        codes = np.empty((len(packed), 2), np.uint8)
        codes[:, 0] = packed & 15
        codes[:, 1] = packed >> 4
        return codes.reshape(-1)
    triples = packed.reshape(-1, 3).astype(np.uint32)
    whole = triples[:, 0] | triples[:, 1] << 8 | triples[:, 2] << 16
    return np.stack([whole >> shift & 63 for shift in (0, 6, 12, 18)], axis=1).astype(np.uint8).reshape(-1)


def pack(codes: Any, bits: int) -> Any:
    """The other way around."""
    each = 2 if bits == 4 else 4
    if len(codes) % each:
        raise ValueError(f"elements of {bits} bits are written {each} at a time, and there are {len(codes)}")
    if bits == 4:
        return codes[0::2] & 15 | (codes[1::2] & 15) << 4
    parts = (codes.reshape(-1, 4) & 63).astype(np.uint32)
    whole = parts[:, 0] | parts[:, 1] << 6 | parts[:, 2] << 12 | parts[:, 3] << 18
    return np.stack([whole & 255, whole >> 8 & 255, whole >> 16], axis=1).astype(np.uint8).reshape(-1)
