"""``safetensors.numpy``: files of numpy arrays."""

from __future__ import annotations

import sys

import numpy as np

from weigh._frameworks import _numpy
from weigh.safetensors._errors import SafetensorError
from weigh.safetensors._open import converter, safe_open
from weigh.safetensors._serialize import TensorSpec, deserialize, loaded, serialize, serialize_file

__all__ = [
    "SafetensorError",
    "TensorSpec",
    "deserialize",
    "load",
    "load_file",
    "safe_open",
    "save",
    "save_file",
    "serialize",
    "serialize_file",
    "_TYPES",
]

#: numpy's types, by their names in the format. The others are those of ml_dtypes.
_TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "U64": np.uint64,
    "I32": np.int32,
    "U32": np.uint32,
    "I16": np.int16,
    "U16": np.uint16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": bool,
    "C64": np.complex64,
}


def save(tensor_dict, metadata=None):
    """A file's content, as ``bytes``.

    Args:
        tensor_dict: a ``dict`` of names and arrays, however they lie in memory.
        metadata: a ``dict`` of strings.

    Raises:
        SafetensorError: the format has no such dtype, or a name cannot be used.
    """
    kept = []
    return serialize(_flatten(tensor_dict, kept), metadata=metadata)


def save_file(tensor_dict, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    kept = []
    serialize_file(_flatten(tensor_dict, kept), filename, metadata=metadata)


def load(data):
    """The arrays of a file's content, ``bytes``, by name. They have memory of their own."""
    return loaded(data, converter("numpy"))


def load_file(filename, *, backend="mmap"):
    """The arrays of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()


def _flatten(tensor_dict, keep_alive_buffer):
    """What `serialize` takes of arrays. ``keep_alive_buffer`` gets what has to stay until then."""
    flattened = {}
    for name, array in tensor_dict.items():
        kind = array.dtype.name
        if kind not in _numpy._NAMES:
            # This says that there is no such dtype.
            TensorSpec(dtype=kind, shape=array.shape, data_ptr=0, data_len=0)
        _, known, shape, data = _numpy.entry(name, array)
        keep_alive_buffer.append(data)
        flattened[name] = TensorSpec._of(known, list(shape), data.ctypes.data, data.nbytes)
    return flattened


def _getdtype(dtype_str):
    return _TYPES[dtype_str] if dtype_str in _TYPES else _numpy.dtype_of(dtype_str)


def _view2np(safeview):
    """Arrays of what `deserialize` gives."""
    result = {}
    for name, entry in safeview:
        kind, data = entry["dtype"], np.frombuffer(entry["data"], np.uint8)
        if kind in _numpy._PACKED:
            data = _numpy.unpack(data, _numpy._PACKED[kind])
        result[name] = data.view(_getdtype(kind)).reshape(entry["shape"])
    return result


def _is_little_endian(tensor):
    order = tensor.dtype.byteorder
    if order not in "=|<>":
        raise ValueError(f"Unexpected byte order {order}")
    return order in "|<" or (order == "=" and sys.byteorder == "little")
