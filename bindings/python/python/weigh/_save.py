"""Tensors written to files, and to whatever takes bytes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from typing import IO, Any, Literal, Union

from weigh import _frameworks, _targets, _weigh
from weigh._checkpoint import OpenFile
from weigh._progress import Tell, follow
from weigh._targets import Writer

#: Where files are written: a path, a URL that fsspec knows, or what ``fsspec.open`` gives.
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", OpenFile]

#: How a file is laid out.
Layout = Literal["default", "reference"]


def save(
    tensors: Mapping[str, Any],
    path: Path | IO[bytes] | Writer,
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    stem: str = "model",
    replace: bool = True,
    sync: bool = True,
    layout: Layout = "default",
    progress: bool | Tell | None = None,
) -> list[str]:
    """Writes tensors to a file, or to a folder as a sharded set. It is there whole, or not at all.

    What was at the path before stays until the new file is complete; a crash leaves one or the other. Tensors that
    share memory are written one by one.

    Args:
        tensors: a mapping of names and tensors, of any of the frameworks; `Tensor`s of a checkpoint, which are read
            first; and what numpy can make an array of.
        path: the file; or the folder, if ``max_shard_size`` is given. Or the URL of a file that fsspec can write
            (``"s3://…"``, ``"memory://…"``), what ``fsspec.open(url, "wb")`` gives, or a binary file object: each
            takes one file, in pieces of at most 16 MiB. What an error leaves at a URL is removed; file systems that
            do not write to the side first have lost by then what was there before. What a file object got before an
            error stays; it is neither flushed nor closed, and ``replace`` and ``sync`` do not concern it.
        metadata: a ``dict`` of strings.
        max_shard_size: bytes of tensors in one file, as a number or as ``"5GB"`` (decimal) or ``"5GiB"`` (binary):
            files are named ``model-00001-of-00003.safetensors``, with ``model.safetensors.index.json``.
        stem: what the names of these files begin with.
        replace: whether files that are there already are replaced; otherwise they are an error.
        sync: whether the bytes are on the disk before the file takes its name.
        layout: ``"default"`` or ``"reference"``, which is byte for byte that of ``safetensors``.
        progress: as for `Checkpoint.load`.

    Returns:
        The paths of the files that were written, the index last; none for a file object.

    Raises:
        FileExistsError: ``replace`` is false.
        OSError: the disk is full, the folder cannot be written to, …; or what a file object or fsspec raises.
        ValueError: ``max_shard_size`` with a URL or a file object.
        WeighError: names or sizes that no reader would take.
        TypeError: a dtype that the format does not have, or a tensor without values. The message names the tensor.
        KeyboardInterrupt: Ctrl-C; nothing of it stays.
    """
    work = _Work(path, metadata, max_shard_size, stem, replace, sync, layout)
    return _write(work.take(tensors), progress)


def save_async(
    tensors: Mapping[str, Any],
    path: Path,
    *,
    snapshot: bool = True,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    stem: str = "model",
    replace: bool = True,
    sync: bool = True,
    layout: Layout = "default",
) -> Pending:
    """Starts to write in the background, and returns with a `Pending`.

    A file object is refused: nobody could say when it may be used again.

    Args:
        snapshot: copy the tensors first, while other threads run, so that training can change them meanwhile. If it is
            false they must stay as they are until the writing is done.
        tensors, path, metadata, max_shard_size, stem, replace, sync, layout: as for `save`.

    Raises:
        TypeError, ValueError: what can be said before anything is written; all else is raised by `Pending.wait`.
    """
    work = _Work(path, metadata, max_shard_size, stem, replace, sync, layout)
    if isinstance(work.target, _targets.FileObject):
        raise TypeError("a file object is not written to in the background: give a path or a URL, or use save()")
    return Pending(work.take(tensors, own=snapshot))


def to_bytes(
    tensors: Mapping[str, Any], *, metadata: Mapping[str, str] | None = None, layout: Layout = "default"
) -> bytes:
    """A file's content.

    Args:
        tensors, metadata, layout: as for `save`.

    Raises:
        WeighError, TypeError: as for `save`.
    """
    return _weigh.encode(_frameworks.entries(_mapping(tensors)), _strings(metadata), layout=layout)


class Pending:
    """Writing that goes on in the background, which the end of the program waits for. Made by `save_async`."""

    def __init__(self, work: _Work) -> None:
        self._outcome = _Outcome()
        # The thread holds no reference to this: if nobody else does, it can say that nobody asked.
        self._thread = threading.Thread(target=_run, args=(work, self._outcome), name="weigh-save")
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> list[str]:
        """Waits for the end, and returns the paths of what was written or raises what went wrong.

        Args:
            timeout: seconds to wait at most; without end by default.

        Raises:
            TimeoutError: it is not done after so many seconds; it goes on.
            OSError, WeighError: what went wrong; as for `save`.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the writing is not done after {timeout} seconds")
        self._outcome.is_asked = True
        if self._outcome.error is not None:
            raise self._outcome.error
        return list(self._outcome.paths)

    def __repr__(self) -> str:
        state = "failed" if self._outcome.error is not None else "done" if self.done else "writing"
        return f"<weigh.Pending: {state}>"


class _Outcome:
    """What became of a piece of work."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.error: BaseException | None = None
        self.is_asked = False

    def __del__(self) -> None:
        if self.error is not None and not self.is_asked:
            warnings.warn(f"a file was not written, and nobody waited for it: {self.error}", RuntimeWarning)


def _run(work: _Work, outcome: _Outcome) -> None:
    try:
        outcome.paths = _write(work, None)
    except BaseException as error:
        # The frames of the traceback hold the tensors.
        outcome.error = error.with_traceback(None)


class _Work:
    """What is to be written, and where. Whatever can be said before anything is written is raised here."""

    def __init__(
        self,
        path: Any,
        metadata: Mapping[str, str] | None,
        max_shard_size: int | str | None,
        stem: str,
        replace: bool,
        sync: bool,
        layout: Layout,
    ) -> None:
        self.target = _targets.target(path)
        self.metadata = _strings(metadata)
        self.most = None if max_shard_size is None else size(max_shard_size)
        self.stem = stem
        self.replace = replace
        self.sync = sync
        self.layout = layout
        self.entries: list[_frameworks.Entry] = []
        if self.most is not None and not isinstance(self.target, str):
            raise ValueError("a sharded set is written to a folder of this machine, not to a URL or a file object")

    def take(self, tensors: Mapping[str, Any], own: bool = False) -> _Work:
        """Takes the tensors, in memory that nobody else has if that is asked for."""
        self.entries = _frameworks.entries(_mapping(tensors), own)
        return self


def _mapping(tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"a mapping of names and tensors is written, not a {type(tensors).__name__}")
    return tensors


def _strings(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata is a mapping of strings, not a {type(metadata).__name__}")
    for key, value in metadata.items():
        for text in (key, value):
            if not isinstance(text, str):
                raise TypeError(f"metadata[{key!r}]: keys and values are strings, not {type(text).__name__}")
    return dict(metadata)


def _write(work: _Work, progress: bool | Tell | None) -> list[str]:
    with follow(progress, "saving") as told:
        if not isinstance(work.target, str):
            return _send(work, work.target, told)
        options: dict[str, Any] = {"replace": work.replace, "sync": work.sync, "layout": work.layout}
        if work.most is None:
            _weigh.save(work.target, work.entries, work.metadata, progress=told, **options)
            return [work.target]
        paths = _weigh.save_sharded(
            work.target, work.entries, work.most, work.metadata, stem=work.stem, progress=told, **options
        )
        return [os.fspath(path) for path in paths]


def _send(work: _Work, target: _targets.FileObject | _targets.Remote, told: Tell | None) -> list[str]:
    if isinstance(target, _targets.Remote) and not work.replace:
        target.refuse_to_replace()
    try:
        _weigh.send(work.entries, target.write, work.metadata, layout=work.layout, progress=told)
        target.keep()
    except BaseException:
        target.drop()
        raise
    return list(target.paths)


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

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def size(given: int | str) -> int:
    """Bytes of a number, or of a text as ``"5GB"`` (decimal), ``"5GiB"`` or ``"5G"`` (binary).

    Raises:
        ValueError: that is no size, or less than one byte.
    """
    if isinstance(given, bool):
        raise TypeError("a size is a number of bytes, or a text as '5GB'")
    if isinstance(given, str):
        digits = given.strip().rstrip(_LETTERS)
        try:
            unit = _UNITS[given.strip()[len(digits) :].lower()]
            number = int(float(digits) * unit) if "." in digits else int(digits) * unit
        except (KeyError, ValueError, OverflowError):
            raise ValueError(f"{given!r} is no size: write 5GB or 5GiB") from None
    else:
        number = int(given)
    if not 1 <= number < 2**63:
        raise ValueError(f"{given!r} is no size of a file: it has room for one byte at least, and less than 2^63")
    return number
