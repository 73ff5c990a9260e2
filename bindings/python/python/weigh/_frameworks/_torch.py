"""torch: tensors that own a count of the memory they were read into, each with a storage of its own."""

from __future__ import annotations

from typing import Any

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


def target(device: Any) -> Any:
    """The device, if torch has such; ``None`` for the CPU."""
    if device is None:
        return None
    device = torch.device(device)
    if device.type == "cpu":
        return None
    # Says what is wrong, if something is, before anything is read.
    torch.empty(0, device=device)
    return device


def tensor(buffer: Any, device: Any = None) -> Any:
    """A tensor with the buffer's memory, or a copy of it on another device."""
    name = buffer.dtype
    made = _from_dlpack(buffer.capsule()) if name in _DLPACK else _viewed(buffer, name)
    if device is None or device == "cpu":
        return made
    return to_device(made, device)


def form(name: str, shape: Any) -> tuple[Any, list[int]]:
    """The dtype and the shape that torch has for a tensor of the format.

    Raises:
        TypeError: torch has no such dtype.
        ValueError: torch has the dtype two by two, and the elements of a row are odd in number.
    """
    dtype = DTYPES.get(name)
    if dtype is None:
        raise TypeError(f"torch has no dtype for {name}: load it with numpy")
    sizes = list(shape)
    if name == "F4":
        if not sizes or sizes[-1] % 2:
            raise ValueError(f"torch has F4 two by two: the last dimension of {sizes} has to be even")
        sizes[-1] //= 2
    return dtype, sizes


def _viewed(buffer: Any, name: str) -> Any:
    dtype, sizes = form(name, buffer.shape)
    if buffer.nbytes == 0:
        return torch.empty(sizes, dtype=dtype)
    return torch.frombuffer(buffer, dtype=torch.uint8).view(dtype).reshape(sizes)


def to_device(made: Any, device: Any) -> Any:
    """A copy on a device."""
    return made.to(device)


def staged(device: Any) -> Any:
    """What loads onto a CUDA device by way of pinned memory; ``None`` for all other devices."""
    if device is None or torch.device(device).type != "cuda" or not torch.cuda.is_available():
        return None
    from weigh._frameworks import _cuda

    return _cuda.Loader(_cuda.Cuda(torch.device(device)))


def entry(name: str, value: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for a tensor: its own memory if its elements lie in order, else a copy's.

    Args:
        own: whether it has to be a copy's.
    """
    if value.layout != torch.strided:
        raise TypeError(f"{name}: a tensor of layout {value.layout} has to be made dense first, with .to_dense()")
    if value.device.type == "meta":
        raise TypeError(f"{name}: a tensor on the meta device has no values to write: load or initialize it first")
    kind = NAMES.get(value.dtype)
    if kind is None:
        raise TypeError(f"{name}: the format has no dtype for {value.dtype}: convert it first, with .to()")
    # A subclass may have its own idea of these operations; what is written are its elements.
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        plain = value.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        plain = plain.to("cpu").contiguous()
        plain = _backed(name, plain)
        is_copied = own and not _is_copy(plain, value)
        # As bytes: not all dtypes can be copied.
        data = Bytes(plain.reshape(-1).view(torch.uint8).clone() if is_copied else plain)
    shape = list(plain.shape)
    if kind == "F4":
        if not shape:
            raise TypeError(f"{name}: F4 needs a dimension")
        shape[-1] *= 2
    return name, kind, shape, data


def _backed(name: str, plain: Any) -> Any:
    """The tensor, if it has memory of its own for all that it says it has."""
    bytes_needed = plain.numel() * plain.element_size()
    if bytes_needed == 0:
        return plain
    try:
        end = plain.storage_offset() * plain.element_size() + bytes_needed
        is_backed = plain.data_ptr() != 0 and plain.untyped_storage().nbytes() >= end
    except (RuntimeError, NotImplementedError):
        is_backed = False
    if not is_backed:
        raise TypeError(
            f"{name}: a {type(plain).__name__} has no memory of its own to write: unwrap it first, "
            "as with .full_tensor(), .dequantize() or by gathering it"
        )
    return plain


def _is_copy(made: Any, value: Any) -> bool:
    """Whether a tensor has memory that the one it was made of has not."""
    try:
        return bool(made.untyped_storage().data_ptr() != value.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        # A wrapper: what it wraps may have the same memory.
        return False


class Bytes(tuple[int, int]):
    """The address and the length of a tensor's memory, which lives as long as this."""

    owner: Any

    def __new__(cls, value: Any) -> Bytes:
        made = super().__new__(cls, (value.data_ptr(), value.numel() * value.element_size()))
        made.owner = value
        return made
