"""What can be opened: paths, URLs that fsspec knows, file objects, content in memory."""

from __future__ import annotations

import errno
import io
import operator
import os
import threading
import weakref
from contextlib import suppress
from typing import Any

from weigh import _weigh


#: Bytes that a path has at most, on any system.
_LONGEST_PATH = 1 << 15


def local(path: Any) -> str | None:
    """The path of a file or folder on this machine; ``None`` if it is something else."""
    if isinstance(path, bytes):
        if len(path) > _LONGEST_PATH or b"\0" in path:
            raise ValueError(f"bytes are a path, and {len(path)} of them are none: give memoryview(content)")
        return os.fsdecode(path)
    if isinstance(path, str):
        return None if "://" in path and not os.path.exists(path) else path
    if is_remote(path):
        # What fsspec.open gives, and universal paths, may be of this machine too.
        return str(path.path) if is_local(path.fs) and compression(path) is None else None
    if hasattr(path, "__fspath__"):
        return local(os.fspath(path))
    return None


def is_remote(path: Any) -> bool:
    """Whether it is a path of a file system that fsspec knows: what ``fsspec.open`` gives, or a universal path."""
    return hasattr(path, "fs") and hasattr(path, "path")


def is_local(fs: Any) -> bool:
    """Whether that is the file system of this machine."""
    protocol = getattr(fs, "protocol", ())
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def compression(path: Any) -> str | None:
    """How fsspec is to decompress it, or ``None``. Some objects have a method of this name, which says nothing."""
    how = getattr(path, "compression", None)
    return how if isinstance(how, str) else None


def opened(path: Any, *, strict: bool, max_header: int | None) -> _weigh.Checkpoint:
    """The native checkpoint of whatever it is."""
    found = local(path)
    if found is not None:
        return _weigh.Checkpoint.open(found, strict=strict, max_header=max_header)
    if _is_content(path):
        return _weigh.Checkpoint.open_bytes(path, strict=strict, max_header=max_header)
    reader = _reader(path)
    return _weigh.Checkpoint.open_reader(reader, reader.length, reader.name, strict=strict, max_header=max_header)


def checked(path: Any) -> list[Any]:
    """Everything found in the headers of whatever it is."""
    found = local(path)
    if found is not None:
        return _weigh.check(found)
    if _is_content(path):
        return _weigh.check_bytes(path)
    reader = _reader(path)
    return _weigh.check_reader(reader, reader.length, reader.name)


def remote(path: str) -> tuple[Any, str]:
    """The file system and the path there of a URL."""
    try:
        import fsspec  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(f"{path!r} needs fsspec: pip install fsspec") from error
    fs, inner = fsspec.core.url_to_fs(path)
    return fs, inner


def _is_content(given: Any) -> bool:
    """Whether it has the buffer protocol, as a ``memoryview`` or an ``mmap`` has."""
    if isinstance(given, str):
        return False
    try:
        with memoryview(given) as view:
            is_objects = "O" in view.format
    except TypeError:
        return False
    except (BufferError, ValueError):
        # It has, and native code says why it cannot be looked at now.
        return True
    if is_objects:
        raise TypeError("an array of objects has their addresses, and no content to open")
    return True


def _reader(path: Any) -> Remote | FileObject:
    if isinstance(path, str):
        return Remote(*remote(path), path)
    if is_remote(path):
        if compression(path) is not None:
            raise ValueError(f"{path.path}: a compressed file cannot be read at offsets: decompress it first")
        return Remote(path.fs, str(path.path), str(path.path))
    if isinstance(path, io.TextIOBase):
        raise TypeError("a file of text is no checkpoint: open it in binary mode, as open(path, 'rb')")
    if hasattr(path, "read") and hasattr(path, "seek") and hasattr(path, "tell"):
        return FileObject(path)
    raise TypeError(f"a path, a URL, a binary file or its content is opened, not a {type(path).__name__}")


class Remote:
    """A file of a file system that fsspec knows, read by ranges."""

    def __init__(self, fs: Any, path: str, name: str) -> None:
        self._fs = fs
        self._path = path
        self.name = name
        if fs.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "is a folder: give a file in it", name)
        self.length = fs.size(path)
        if self.length is None:
            raise OSError(errno.EIO, "its length is not known", name)
        self._opened = self._state()

    def read_at(self, offset: int, length: int) -> bytes:
        """So many bytes from an offset on, or fewer if the file ends before that."""
        return _answer(self._fs.cat_file(self._path, start=offset, end=offset + length), length, self.name)

    def verify(self) -> None:
        """Looks whether it is still the file that was opened, as far as its file system tells one from another.

        Raises:
            OSError: it is another.
        """
        with suppress(Exception):
            self._fs.invalidate_cache(self._fs._parent(self._path))
        if self._state() != self._opened:
            raise OSError(errno.EIO, "the file was replaced by another after it was opened", self.name)

    def _state(self) -> str | None:
        try:
            return str(self._fs.ukey(self._path))
        except FileNotFoundError:
            return "none"
        except Exception:
            return None


class _Lock:
    """The lock of one file object, whatever checkpoints read from it."""

    __slots__ = ("lock", "__weakref__")

    def __init__(self) -> None:
        self.lock = threading.Lock()


#: The locks of file objects that are open, by what tells one object from another while it is there.
_locks: weakref.WeakValueDictionary[int, _Lock] = weakref.WeakValueDictionary()
_making = threading.Lock()


class FileObject:
    """A binary file object that can seek, with its position where it was after each read.

    Reads are one at a time, also those of other checkpoints from the same object. Nobody else may use the object in another thread meanwhile, and it may not read from its
    own checkpoint.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        with _making:
            self._lock = _locks.setdefault(id(file), _Lock())
        self.name = str(getattr(file, "name", "<file>"))
        if not getattr(file, "seekable", lambda: True)():
            raise io.UnsupportedOperation(f"{self.name}: cannot seek: read it whole and give a memoryview of that")
        with self._lock.lock:
            before = file.tell()
            # Not all that can seek say where they are then.
            file.seek(0, os.SEEK_END)
            self.length = operator.index(file.tell())
            file.seek(before)

    def read_at(self, offset: int, length: int) -> bytes:
        """So many bytes from an offset on, or fewer."""
        with self._lock.lock:
            before = self._file.tell()
            try:
                self._file.seek(offset)
                return _answer(self._file.read(length), length, self.name)
            finally:
                self._file.seek(before)


def _answer(answer: Any, length: int, name: str) -> bytes:
    """What was read, if it is bytes, and no more of them than were asked for.

    Raises:
        TypeError: it is something else.
        OSError: there are more: nobody knows which of them are the right ones.
    """
    try:
        view = memoryview(answer)
    except TypeError:
        raise TypeError(f"{name}: what it reads is bytes, not a {type(answer).__name__}") from None
    if view.nbytes > length:
        raise OSError(errno.EIO, f"{view.nbytes} bytes were read where {length} were asked for", name)
    return answer if isinstance(answer, bytes) else view.tobytes()
