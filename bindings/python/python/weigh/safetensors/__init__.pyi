import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Literal, NoReturn, TypeAlias

from typing_extensions import Self

from weigh._errors import Finding
from weigh._weigh import PySafeSlice as PySafeSlice
from weigh._weigh import SafeOpen
from weigh._weigh import TensorMeta as TensorMeta

__all__ = [
    "PrefetchLoader",
    "PySafeSlice",
    "SafetensorError",
    "TensorMeta",
    "TensorSpec",
    "__version__",
    "deserialize",
    "install",
    "safe_open",
    "serialize",
    "serialize_file",
    "uninstall",
]

__version__: str

_Path: TypeAlias = str | os.PathLike[str]
_Device: TypeAlias = str | int | None
_Backend: TypeAlias = Literal["mmap", "pread"]
_Metadata: TypeAlias = dict[str, str] | None

class SafetensorError(Exception):
    code: str
    findings: list[Finding]
    help: str | None
    def __init__(self, *args: object) -> None: ...

class safe_open(SafeOpen):
    def __new__(
        cls, filename: _Path, framework: str, device: _Device = "cpu", *, backend: _Backend = "mmap"
    ) -> Self: ...
    def __enter__(self) -> Self: ...
    def get_tensors(self, /) -> dict[str, Any]: ...
    def prefetch(
        self, plan: Mapping[str, slice | None] | None = None, *, device: _Device = None, threads: int = 8
    ) -> PrefetchLoader: ...

class _safe_open_handle(safe_open):
    def __new__(cls, f: Any, framework: str, device: _Device = "cpu", *, backend: _Backend = "mmap") -> Self: ...

class PrefetchLoader:
    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn: ...
    def names(self) -> list[str]: ...
    def take(self, name: str) -> Any: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[str, Any]]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _exc_type: Any, _exc_value: Any, _traceback: Any) -> None: ...

class TensorSpec:
    def __new__(cls, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> Self: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def data_len(self) -> int: ...

def serialize(tensor_dict: dict[str, TensorSpec], metadata: _Metadata = None) -> bytes: ...
def serialize_file(tensor_dict: dict[str, TensorSpec], filename: _Path, metadata: _Metadata = None) -> None: ...
def deserialize(bytes: bytes) -> list[tuple[str, dict[str, Any]]]: ...
def install() -> AbstractContextManager[ModuleType]: ...
def uninstall() -> None: ...
