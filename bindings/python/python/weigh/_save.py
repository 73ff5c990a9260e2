"""Tensors written to files."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from weigh import _frameworks, _weigh
from weigh._progress import follow


def save(tensors, path, *, metadata=None, max_shard_size=None, stem="model", replace=True, sync=True, layout="default", progress=None):
    """Writes tensors to a file, or to a folder as a sharded set. It is there whole, or not at all.

    What was at the path before stays until the new file is complete; a crash leaves one or the other.

    Args:
        tensors: a mapping of names and tensors, of any of the frameworks; what numpy can make an array of, too.
        path: the file; or the folder, if ``max_shard_size`` is given.
        metadata: a ``dict`` of strings.
        max_shard_size: bytes of tensors in one file, as a number or as ``"5GB"`` (decimal) or ``"5GiB"`` (binary):
            files are named ``model-00001-of-00003.safetensors``, with ``model.safetensors.index.json``.
        stem: what the names of these files begin with.
        replace: whether files that are there already are replaced; otherwise they are an error.
        sync: whether the bytes are on the disk before the file takes its name.
        layout: ``"default"`` or ``"reference"``, which is byte for byte that of ``safetensors``.
        progress: as for `Checkpoint.load`.

    Returns:
        The paths of the files that were written, the index last.

    Raises:
        FileExistsError: ``replace`` is false.
        OSError: the disk is full, the folder cannot be written to, …
        WeighError: names or sizes that no reader would take.
        TypeError: a dtype that the format does not have.
    """
    return _write(_Work(tensors, path, metadata, max_shard_size, stem, replace, sync, layout), progress)


def save_async(tensors, path, *, snapshot=True, **options):
    """Starts to write in the background, and returns at once with a `Pending`.

    Args:
        snapshot: copy the tensors first, so that training can change them meanwhile. If it is false they must stay as
            they are until the writing is done.
        options: as for `save`, but for ``progress``.
    """
    work = _Work(tensors, path, **_defaults(options))
    if snapshot:
        work.entries = [(name, kind, shape, _copied(data)) for name, kind, shape, data in work.entries]
    return Pending(work)


def to_bytes(tensors, *, metadata=None, layout="default"):
    """A file's content, as ``bytes``."""
    return _weigh.encode(_frameworks.entries(tensors), metadata, layout=layout)


class Pending:
    """Writing that goes on in the background."""

    def __init__(self, work):
        self._paths = None
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="weigh-save")
        self._thread.start()

    def _run(self, work):
        try:
            self._paths = _write(work, None)
        except BaseException as error:
            self._error = error

    @property
    def done(self):
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def wait(self, timeout=None):
        """Waits for the end, and returns the paths of what was written or raises what went wrong.

        Raises:
            TimeoutError: it is not done after so many seconds; it goes on.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the writing is not done after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self._paths


class _Work:
    def __init__(self, tensors, path, metadata, max_shard_size, stem, replace, sync, layout):
        if not isinstance(tensors, Mapping):
            raise TypeError(f"names and tensors are written, a mapping, not a {type(tensors).__name__}")
        self.path = os.fspath(path)
        self.metadata = metadata
        self.most = None if max_shard_size is None else size(max_shard_size)
        self.stem = stem
        self.options = {"replace": replace, "sync": sync, "layout": layout}
        self.entries = _frameworks.entries(tensors)


def _defaults(options):
    known = {
        "metadata": None,
        "max_shard_size": None,
        "stem": "model",
        "replace": True,
        "sync": True,
        "layout": "default",
    }
    unknown = options.keys() - known.keys()
    if unknown:
        raise TypeError(f"there is no option {sorted(unknown)[0]!r}")
    return known | options


def _write(work, progress):
    with follow(progress, "saving") as told:
        if work.most is None:
            _weigh.save(work.path, work.entries, work.metadata, progress=told, **work.options)
            return [work.path]
        paths = _weigh.save_sharded(
            work.path, work.entries, work.most, work.metadata, stem=work.stem, progress=told, **work.options
        )
        return [os.fspath(path) for path in paths]


def _copied(data):
    if isinstance(data, tuple):
        owner = data.owner.clone()
        return type(data)(owner)
    return bytes(data)


_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def size(text):
    """Bytes of a number, or of a text as ``"5GB"`` (decimal), ``"5GiB"`` or ``"5G"`` (binary)."""
    if isinstance(text, int):
        number = text
    else:
        digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = _UNITS.get(text.strip()[len(digits) :].strip().lower())
        if unit is None:
            raise ValueError(f"{text!r} is no size: write 5GB or 5GiB")
        number = int(float(digits) * unit) if "." in digits else int(digits) * unit
    if number < 1:
        raise ValueError("a file has room for one byte at least")
    return number
