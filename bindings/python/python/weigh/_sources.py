"""What can be opened: paths, URLs that fsspec knows, file objects."""

from __future__ import annotations

import os
import threading

from weigh import _weigh


def local(path):
    """The path of a file or folder on this machine; ``None`` if it is something else."""
    if isinstance(path, bytes):
        return os.fsdecode(path)
    if isinstance(path, str):
        return None if "://" in path and not os.path.exists(path) else path
    if hasattr(path, "__fspath__") and not hasattr(path, "fs"):
        return local(os.fspath(path))
    return None


def opened(path, *, strict, max_header):
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


def content(path):
    """All bytes of what is not a local file."""
    if isinstance(path, (bytearray, memoryview)):
        return path
    reader = _reader(path)
    return reader.read_at(0, reader.length)


def _reader(path):
    if isinstance(path, str):
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"opening {path!r} needs fsspec: pip install fsspec") from error
        fs, inner = fsspec.core.url_to_fs(path)
        return Remote(fs, inner, path)
    if hasattr(path, "fs") and hasattr(path, "path"):
        # What fsspec.open gives, and universal paths.
        return Remote(path.fs, path.path, str(path.path))
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObject(path)
    raise TypeError(f"a path, a URL or a binary file is opened, not a {type(path).__name__}")


class Remote:
    """A file of a file system that fsspec knows, read by ranges."""

    def __init__(self, fs, path, name):
        self._fs = fs
        self._path = path
        self.name = name
        self.length = fs.size(path)
        if self.length is None:
            raise OSError(f"{name}: its length is not known")

    def read_at(self, offset, length):
        return self._fs.cat_file(self._path, start=offset, end=offset + length)


class FileObject:
    """A binary file object that can seek. Its position is put back."""

    def __init__(self, file):
        self._file = file
        self._lock = threading.Lock()
        self.name = str(getattr(file, "name", "<file>"))
        with self._lock:
            before = file.tell()
            self.length = file.seek(0, os.SEEK_END)
            file.seek(before)

    def read_at(self, offset, length):
        with self._lock:
            before = self._file.tell()
            try:
                self._file.seek(offset)
                return self._file.read(length)
            finally:
                self._file.seek(before)
