from typing import Any

import numpy as np

from weigh.safetensors import SafetensorError as SafetensorError
from weigh.safetensors import TensorSpec as TensorSpec
from weigh.safetensors import _Backend, _Metadata, _Path
from weigh.safetensors import deserialize as deserialize
from weigh.safetensors import safe_open as safe_open
from weigh.safetensors import serialize as serialize
from weigh.safetensors import serialize_file as serialize_file

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

_TYPES: dict[str, Any]

def save(tensor_dict: dict[str, np.ndarray[Any, Any]], metadata: _Metadata = None) -> bytes: ...
def save_file(tensor_dict: dict[str, np.ndarray[Any, Any]], filename: _Path, metadata: _Metadata = None) -> None: ...
def load(data: bytes) -> dict[str, np.ndarray[Any, Any]]: ...
def load_file(filename: _Path, *, backend: _Backend = "mmap") -> dict[str, np.ndarray[Any, Any]]: ...
