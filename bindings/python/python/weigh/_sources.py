"""What can be opened: paths, URLs that fsspec knows, file objects, content in memory."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

from weigh import _weigh


def local(path: Any) -> str | None:
    """The path of a file or folder on this machine; ``None`` if it is something else."""
    if isinstance(path, bytes):
        return os.fsdecode(path)
    if isinstance(path, str):
        return None if "://" in path and not os.path.exists(path) else path
    if hasattr(path, "__fspath__") and not hasattr(path, "fs"):
        return local(os.fspath(path))
    return None


def opened(path: Any, *, strict: bool, max_header: int | None) -> _weigh.Checkpoint:
    """The native checkpoint of whatever it is."""
    found = local(path)
    if found is not None:
        return _weigh.Checkpoint.open(found, strict=strict, max_header=max_header)
    if isinstance(path, (bytearray, memoryview)):
        return _weigh.Checkpoint.open_bytes(path, strict=strict, max_header=max_header)
    reader = _reader(path)
    return _weigh.Checkpoint.open_reader(
        reader, reader.length, reader.name, strict=strict, max_header=max_header
    )


def checked(path: Any) -> list[Any]:
    """Everything found in the headers of whatever it is."""
    found = local(path)
    if found is not None:
        return _weigh.check(found)
    if isinstance(path, (bytearray, memoryview)):
        return _weigh.check_bytes(path)
    reader = _reader(path)
    return _weigh.check_reader(reader, reader.length, reader.name)


def remote(path: Any) -> tuple[Any, str]:
    """The file system and the path there of a URL."""
    try:
        import fsspec  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(f"{path!r} needs fsspec: pip install fsspec") from error
    fs, inner = fsspec.core.url_to_fs(path)
    return fs, inner


def _reader(path: Any) -> Remote | FileObject:
    if isinstance(path, str):
        return Remote(*remote(path), path)
    if hasattr(path, "fs") and hasattr(path, "path"):
        # What fsspec.open gives, and universal paths.
        if getattr(path, "compression", None) is not None:
            raise ValueError(f"{path.path}: a compressed file cannot be read at offsets: decompress it first")
        return Remote(path.fs, str(path.path), str(path.path))
    if isinstance(path, io.TextIOBase):
        raise TypeError("a file of text is no checkpoint: open it in binary mode, as open(path, 'rb')")
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObject(path)
    raise TypeError(f"a path, a URL, a binary file or its content is opened, not a {type(path).__name__}")


class Remote:
    """A file of a file system that fsspec knows, read by ranges."""

    def __init__(self, fs: Any, path: str, name: str) -> None:
        self._fs = fs
        self._path = path
        self.name = name
        if fs.isdir(path):
            raise IsADirectoryError(21, "is a folder: give a file in it", name)
        self.length = fs.size(path)
        if self.length is None:
            raise OSError(f"{name}: its length is not known")

    def read_at(self, offset: int, length: int) -> bytes:
        """So many bytes from an offset on, or fewer if the file ends before that."""
        return self._fs.cat_file(self._path, start=offset, end=offset + length)  # type: ignore[no-any-return]


class FileObject:
    """A binary file object that can seek, with its position where it was after each read.

    Reads are one at a time. Nobody else may use the object in another thread meanwhile.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.name = str(getattr(file, "name", "<file>"))
        if not getattr(file, "seekable", lambda: True)():
            raise io.UnsupportedOperation(f"{self.name}: cannot seek: read it whole and give a memoryview of that")
        before = file.tell()
        self.length = file.seek(0, os.SEEK_END)
        file.seek(before)

    def read_at(self, offset: int, length: int) -> bytes:
        """So many bytes from an offset on, or fewer."""
        with self._lock:
            before = self._file.tell()
            try:
                self._file.seek(offset)
                return self._file.read(length)  # type: ignore[no-any-return]
            finally:
                self._file.seek(before)
