from typing import Any

import paddle

from weigh.safetensors import SafetensorError as SafetensorError
from weigh.safetensors import TensorSpec as TensorSpec
from weigh.safetensors import _Backend, _Device, _Metadata, _Path, numpy
from weigh.safetensors import deserialize as deserialize
from weigh.safetensors import safe_open as safe_open
from weigh.safetensors import serialize as serialize
from weigh.safetensors import serialize_file as serialize_file

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

NPDTYPES: dict[paddle.dtype, Any]
_SIZE: dict[paddle.dtype, int]
_TYPES: dict[str, paddle.dtype]

def save(tensors: dict[str, paddle.Tensor], metadata: _Metadata = None) -> bytes: ...
def save_file(tensors: dict[str, paddle.Tensor], filename: _Path, metadata: _Metadata = None) -> None: ...
def load(data: bytes, device: _Device = "cpu") -> dict[str, paddle.Tensor]: ...
def load_file(filename: _Path, device: _Device = "cpu", *, backend: _Backend = "mmap") -> dict[str, paddle.Tensor]: ...
