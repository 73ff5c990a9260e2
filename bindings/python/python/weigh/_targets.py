"""What can be written to: paths, URLs that fsspec knows, file objects."""

from __future__ import annotations

import errno
import io
import operator
import os
from contextlib import suppress
from typing import Any, Protocol

from weigh import _sources


class Writer(Protocol):
    """A binary file object that can be written to."""

    def write(self, data: bytes, /) -> Any:
        """Takes bytes, and returns how many of them it took."""


def target(path: Any) -> str | FileObject | Remote:
    """Where to write: a path of this machine, or what writes elsewhere.

    Raises:
        TypeError: that is nothing that can be written to.
        ValueError: it was opened for something else.
        OSError: a file object that cannot be written to.
    """
    if isinstance(path, type):
        raise TypeError(f"{path.__name__} is a class: give an object of it")
    # File objects first: those of fsspec have a path too.
    if callable(getattr(path, "write", None)):
        return FileObject(path)
    if _sources.is_remote(path):
        if _sources.compression(path) is not None:
            raise ValueError(f"{path.path}: a compressed file is of no use: nobody could read it at offsets")
        mode = getattr(path, "mode", "wb")
        if mode != "wb":
            raise ValueError(f'{path.path}: it was opened with mode {mode!r}, and is written to with "wb"')
    found = _sources.local(path)
    if found is not None:
        return found
    if isinstance(path, str):
        fs, inner = _sources.remote(path)
        return inner if _sources.is_local(fs) else Remote(fs, inner, path)
    if _sources.is_remote(path):
        return Remote(path.fs, str(path.path), str(path.path))
    raise TypeError(f"a path, a URL or a binary file object is written to, not a {type(path).__name__}")


class FileObject:
    """A binary file object, written to from where it stands. What was written before an error stays."""

    #: There is no path to tell.
    paths: list[str] = []

    def __init__(self, file: Any) -> None:
        self._file = file
        name = str(getattr(file, "name", "<file>"))
        if isinstance(file, io.TextIOBase):
            raise TypeError(f"{name}: a file of text takes no tensors: open it in binary mode, as open(path, 'wb')")
        if not getattr(file, "writable", lambda: True)():
            raise io.UnsupportedOperation(f"{name}: is not open for writing")
        self._name = name

    def write(self, data: bytes) -> None:
        """Writes all of it, however little the file takes at a time."""
        _write(self._file, data, self._name)

    def keep(self) -> None:
        """All is written."""

    def drop(self) -> None:
        """Something went wrong."""


class Remote:
    """A file of a file system that fsspec knows: there whole, or not at all.

    File systems that write to the side first keep what was there before until all is written. Of others, what was
    there is gone when the writing begins, and what an error leaves is removed.
    """

    def __init__(self, fs: Any, path: str, name: str) -> None:
        self._fs = fs
        self._path = path
        self._name = name
        self._file: Any = None
        self._before: str | None = None
        #: Whether it is written within a transaction of the caller's.
        self._is_theirs = False
        self.paths = [name]

    def refuse_to_replace(self) -> None:
        """Refuses what is there already. Another may come to be there between this and the writing."""
        if self._fs.exists(self._path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._name)

    def write(self, data: bytes) -> None:
        """Writes all of it. The file is opened when the first bytes come: no earlier error costs what was there."""
        if self._file is None:
            self._before = self._state()
            self._is_theirs = bool(getattr(self._fs, "_intrans", False))
            if self._is_theirs:
                self._file = self._fs.open(self._path, "wb")
            else:
                self._file = self._fs.open(self._path, "wb", autocommit=False)
                self._forget()
        _write(self._file, data, self._name)

    def keep(self) -> None:
        """All is written: the file takes its name, now or when the caller's transaction ends."""
        self._file.close()
        if self._is_aside() and not self._is_theirs:
            self._file.commit()

    def drop(self) -> None:
        """Something went wrong: what was written goes."""
        if self._file is None:
            return
        # Whatever else goes wrong now is not why.
        with suppress(Exception):
            self._file.close()
        if self._is_theirs:
            self._forget()
        if self._is_aside() or self._is_theirs:
            with suppress(Exception):
                self._file.discard()
        with suppress(Exception):
            self._fs.invalidate_cache(self._path)
        if self._state() not in (None, self._before):
            with suppress(Exception):
                self._fs.rm_file(self._path)

    def _is_aside(self) -> bool:
        # Not all heed what they were opened with; those that do say so.
        return getattr(self._file, "autocommit", True) is False

    def _state(self) -> str | None:
        """What tells one file at the path from another; ``None`` if there is none."""
        try:
            return str(self._fs.ukey(self._path))
        except Exception:
            return None

    def _forget(self) -> None:
        """Takes the file out of the file system's own transaction, which would commit it, or keep it in memory."""
        with suppress(Exception):
            self._fs.transaction.files.remove(self._file)


def _write(file: Any, data: bytes, name: str) -> None:
    rest = memoryview(data)
    while rest:
        # Bytes themselves where they are all of it: some take nothing else.
        taken = file.write(data if len(rest) == len(data) else rest)
        if taken is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "takes no bytes now, and would not wait", name)
            # Some say nothing, and have taken all.
            return
        taken = operator.index(taken)
        if not 0 < taken <= len(rest):
            raise OSError(errno.EIO, f"took {taken} bytes of {len(rest)}", name)
        rest = rest[taken:]
