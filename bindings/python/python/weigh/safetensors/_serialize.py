"""Files made of addresses, and taken apart into bytes."""

from __future__ import annotations

import operator
import os

from weigh import _weigh
from weigh._errors import FormatError
from weigh.safetensors._errors import SafetensorError, misfit, not_written, refused

#: The dtypes of the format by the names that numpy and torch have for them.
_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn_x2": "F4",
    "complex64": "C64",
}

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_MOST = 2**64 - 1


class TensorSpec:
    """A tensor in memory, to be written.

    The address is taken at its word: whoever makes this keeps the memory, as it is, until the writing is done.

    Args:
        dtype: what numpy or torch calls it, as ``"float32"``.
        shape: the dimensions; of ``"float4_e2m1fn_x2"`` those of torch, the last one half as long.
        data_ptr: the address of the first byte.
        data_len: the number of bytes.

    Attributes:
        dtype: the name in the format, as ``"F32"``.
        shape: the dimensions in elements.

    Raises:
        SafetensorError: the format has no such dtype.
    """

    __module__ = "weigh.safetensors"
    __slots__ = ("_dtype", "_shape", "_data_ptr", "_data_len")

    def __new__(cls, *, dtype, shape, data_ptr, data_len):
        if not isinstance(dtype, str):
            raise TypeError(_not("dtype", dtype, "str"))
        name = _NAMES.get(dtype)
        if name is None:
            dtype.encode()
            error = SafetensorError(f'Unknown dtype "{dtype}". Supported dtypes: {", ".join(_NAMES)}')
            error.code = "dtype-unknown"
            raise error
        if isinstance(shape, (str, bytes)):
            raise TypeError(_not("shape", shape, "Sequence"))
        sizes = [_unsigned("shape", size) for size in shape]
        if name == "F4" and sizes:
            sizes[-1] *= 2
        return cls._of(name, sizes, _unsigned("data_ptr", data_ptr), _unsigned("data_len", data_len))

    @classmethod
    def _of(cls, name, shape, data_ptr, data_len):
        made = object.__new__(cls)
        made._dtype = name
        made._shape = shape
        made._data_ptr = data_ptr
        made._data_len = data_len
        return made

    @property
    def dtype(self):
        """The dtype, by its name in the format."""
        return self._dtype

    @property
    def shape(self):
        """The dimensions, in elements."""
        return list(self._shape)

    @property
    def data_ptr(self):
        """The address of the first byte."""
        return self._data_ptr

    @property
    def data_len(self):
        """The number of bytes."""
        return self._data_len

    def __repr__(self):
        return (
            f"TensorSpec(dtype='{self._dtype}', shape={self._shape}, data_ptr={self._data_ptr},"
            f" data_len={self._data_len})"
        )

    def _entry(self, name):
        """What native code writes."""
        elements = 1
        for size in self._shape:
            elements *= size
            if elements > _MOST:
                raise misfit("overflow", f"{name}: {self._shape} is more elements than there can be")
        bits = elements * _bits(self._dtype)
        if bits != self._data_len * 8:
            account = f"{name}: {self._dtype} {self._shape} is {bits / 8:g} bytes, and {self._data_len} were given"
            raise misfit("size", account)
        if self._data_ptr == 0 and self._data_len:
            raise misfit("size", f"{name}: there is no memory at the address 0")
        return name, self._dtype, self._shape, (self._data_ptr, self._data_len)


def _bits(dtype):
    """Bits of an element: the number in the name of its dtype. One that has none takes a byte."""
    return int(dtype.lstrip(_LETTERS).partition("_")[0] or 8)


def _not(argument, value, kind):
    return f"argument '{argument}': '{type(value).__name__}' object is not an instance of '{kind}'"


def _unsigned(argument, value):
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"argument '{argument}': {error}") from None
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number > _MOST:
        raise OverflowError("int too big to convert")
    return number


def _entries(tensor_dict):
    if not isinstance(tensor_dict, dict):
        raise TypeError(_not("tensor_dict", tensor_dict, "dict"))
    for name, spec in tensor_dict.items():
        if not isinstance(name, str):
            raise TypeError(_not("tensor_dict", name, "str"))
        if not isinstance(spec, TensorSpec):
            raise TypeError(_not("tensor_dict", spec, "TensorSpec"))
    return [spec._entry(name) for name, spec in tensor_dict.items()]


def _checked(metadata):
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise TypeError(_not("metadata", metadata, "dict"))
    for part in (part for pair in metadata.items() for part in pair):
        if not isinstance(part, str):
            raise TypeError(_not("metadata", part, "str"))
    return metadata


def serialize(tensor_dict, metadata=None):
    """A file's content.

    Args:
        tensor_dict: a ``dict`` of names and `TensorSpec`.
        metadata: a ``dict`` of strings.

    Returns:
        ``bytes``, of one layout whatever the order of the two.

    Raises:
        SafetensorError: a tensor and its bytes do not fit, or a name cannot be used.
    """
    metadata = _checked(metadata)
    entries = _entries(tensor_dict)
    try:
        return _weigh.encode(entries, metadata, layout="reference")
    except ValueError as error:
        raise not_written(error) from None


def serialize_file(tensor_dict, filename, metadata=None):
    """Writes a file, which is there whole or not at all. What tensors are mapped of stays as it is.

    Args:
        tensor_dict: a ``dict`` of names and `TensorSpec`.
        filename: the path; what is there is replaced.
        metadata: a ``dict`` of strings.

    Raises:
        SafetensorError: as for `serialize`, and what the system reports, which is an ``OSError`` too.
    """
    path = path_of("filename", filename)
    metadata = _checked(metadata)
    entries = _entries(tensor_dict)
    try:
        _weigh.save(path, entries, metadata, sync=False, layout="reference")
    except (OSError, ValueError) as error:
        raise not_written(error) from None


def deserialize(bytes):  # noqa: A002
    """The tensors of a file's content.

    Args:
        bytes: the content.

    Returns:
        A list of ``(name, {"dtype": str, "shape": list, "data": bytearray})``, in the order of their bytes.

    Raises:
        SafetensorError: the content is not sound.
    """
    if not isinstance(bytes, type(b"")):
        raise TypeError(_not("bytes", bytes, "bytes"))
    try:
        return _weigh.deserialize(bytes)
    except FormatError as error:
        raise refused(error, "Error while deserializing", bytes[:8], len(bytes)) from None


def loaded(data, convert):
    """The tensors of a file's content, in memory of their own: one allocation.

    Args:
        data: the content.
        convert: what makes a tensor of a `weigh.Buffer` and a device.
    """
    if not isinstance(data, bytes):
        raise TypeError(_not("bytes", data, "bytes"))
    try:
        checkpoint = _weigh.Checkpoint.open_bytes(data)
    except FormatError as error:
        raise refused(error, "Error while deserializing", data[:8], len(data)) from None
    names = checkpoint.names("file")
    buffers = checkpoint.read([(name, None) for name in names], overcommit=True)
    return {name: convert(buffer, None) for name, buffer in zip(names, buffers, strict=True)}


def path_of(argument, value):
    """A path, as `safetensors` takes it: ``str`` or ``os.PathLike``."""
    try:
        path = os.fspath(value)
    except TypeError as error:
        raise TypeError(f"argument '{argument}': {error}") from None
    if not isinstance(path, str):
        raise TypeError(_not(argument, path, "str"))
    return path


def not_contiguous(name):
    """The refusal of a tensor whose elements do not lie in order, in the words that programs look for."""
    return ValueError(
        f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you"
        " are trying to save tensors which are reference of each other in which case it's recommended to save"
        " only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to"
        " pack it before saving."
    )
