"""``safetensors.paddle``: files of paddle tensors."""

from __future__ import annotations

import math

import numpy as np
import paddle

from weigh.safetensors import numpy
from weigh.safetensors._errors import SafetensorError
from weigh.safetensors._open import converter, device_of, safe_open
from weigh.safetensors._serialize import TensorSpec, deserialize, loaded, not_contiguous, serialize, serialize_file

__all__ = [
    "NPDTYPES",
    "SafetensorError",
    "TensorSpec",
    "deserialize",
    "load",
    "load_file",
    "numpy",
    "safe_open",
    "save",
    "save_file",
    "serialize",
    "serialize_file",
    "_SIZE",
    "_TYPES",
]

#: The dtypes that paddle has: their names in the format, paddle's, bytes of an element, numpy's type of that size.
_KNOWN = [
    (name, getattr(paddle, own), size, like)
    for name, own, size, like in (
        ("F64", "float64", 8, np.float64),
        ("F32", "float32", 4, np.float32),
        ("F16", "float16", 2, np.float16),
        ("BF16", "bfloat16", 2, np.float16),
        ("I64", "int64", 8, np.int64),
        ("I32", "int32", 4, np.int32),
        ("I16", "int16", 2, np.int16),
        ("I8", "int8", 1, np.int8),
        ("U8", "uint8", 1, np.uint8),
        ("BOOL", "bool", 1, bool),
        ("F8_E4M3", "float8_e4m3fn", 1, np.uint8),
        ("F8_E5M2", "float8_e5m2", 1, np.uint8),
        ("C64", "complex64", 8, np.complex64),
    )
    if hasattr(paddle, own)
]

_TYPES = {name: own for name, own, _, _ in _KNOWN}
_SIZE = {own: size for _, own, size, _ in _KNOWN}
NPDTYPES = {own: like for _, own, _, like in _KNOWN}


def save(tensors, metadata=None):
    """A file's content, as ``bytes``.

    Args:
        tensors: a ``dict`` of names and tensors that lie in order.
        metadata: a ``dict`` of strings.

    Raises:
        ValueError: a tensor does not lie in order, or is none.
        SafetensorError: a name cannot be used.
    """
    kept = []
    return serialize(_flatten(tensors, kept), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    kept = []
    serialize_file(_flatten(tensors, kept), filename, metadata=metadata)


def load(data, device="cpu"):
    """The tensors of a file's content, ``bytes``, by name, on a device."""
    place = device_of(device)
    tensor = converter("paddle")
    return loaded(data, lambda buffer, _: tensor(buffer, place))


def load_file(filename, device="cpu", *, backend="mmap"):
    """The tensors of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="paddle", device=device, backend=backend) as file:
        return file.get_tensors()


def _getdtype(dtype_str):
    return _TYPES[dtype_str]


def _np2paddle(numpy_dict, device="cpu"):
    return {name: paddle.to_tensor(array, place=device) for name, array in numpy_dict.items()}


def _paddle2np(paddle_dict):
    return {name: tensor.detach().cpu().numpy() for name, tensor in paddle_dict.items()}


def _flatten(tensors, keep_alive_buffer):
    """What `serialize` takes of tensors. ``keep_alive_buffer`` gets what has to stay until then."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, paddle.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected paddle.Tensor but received {type(tensor)}")
    flattened = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise not_contiguous(name)
        size = math.prod(tensor.shape) * _SIZE[tensor.dtype]
        tensor = tensor.detach().cpu()
        keep_alive_buffer.append(tensor)
        dtype = str(tensor.dtype).rpartition(".")[2]
        address = tensor.data_ptr() if size else 0
        flattened[name] = TensorSpec(dtype=dtype, shape=tensor.shape, data_ptr=address, data_len=size)
    return flattened
