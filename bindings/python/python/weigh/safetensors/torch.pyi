from collections.abc import Iterable

import torch

from weigh.safetensors import SafetensorError as SafetensorError
from weigh.safetensors import TensorSpec as TensorSpec
from weigh.safetensors import _Backend, _Device, _Metadata, _Path
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
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
    "serialize",
    "serialize_file",
    "storage_ptr",
    "storage_size",
    "_SIZE",
    "_TYPES",
    "_end_ptr",
    "_filter_shared_not_shared",
    "_find_shared_tensors",
    "_is_complete",
    "_remove_duplicate_names",
]

_SIZE: dict[torch.dtype, int]
_TYPES: dict[str, torch.dtype]

def save_model(
    model: torch.nn.Module, filename: _Path, metadata: _Metadata = None, force_contiguous: bool = True
) -> None: ...
def load_model(
    model: torch.nn.Module, filename: _Path, strict: bool = True, device: _Device = "cpu", *, backend: _Backend = "mmap"
) -> tuple[set[str], list[str]]: ...
def save(tensors: dict[str, torch.Tensor], metadata: _Metadata = None) -> bytes: ...
def save_file(tensors: dict[str, torch.Tensor], filename: _Path, metadata: _Metadata = None) -> None: ...
def load_file(filename: _Path, device: _Device = "cpu", *, backend: _Backend = "mmap") -> dict[str, torch.Tensor]: ...
def load(data: bytes) -> dict[str, torch.Tensor]: ...
def storage_ptr(tensor: torch.Tensor) -> int: ...
def storage_size(tensor: torch.Tensor) -> int: ...
def _end_ptr(tensor: torch.Tensor) -> int: ...
def _find_shared_tensors(state_dict: dict[str, torch.Tensor]) -> list[set[str]]: ...
def _filter_shared_not_shared(tensors: list[set[str]], state_dict: dict[str, torch.Tensor]) -> list[set[str]]: ...
def _is_complete(tensor: torch.Tensor) -> bool: ...
def _remove_duplicate_names(
    state_dict: dict[str, torch.Tensor],
    *,
    preferred_names: Iterable[str] | None = None,
    discard_names: Iterable[str] | None = None,
) -> dict[str, list[str]]: ...
