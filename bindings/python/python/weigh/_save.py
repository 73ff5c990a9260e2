"""Tensors written to files."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Literal, Union

from weigh import _frameworks, _sources, _weigh
from weigh._progress import Tell, follow

#: Where files are written.
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: How a file is laid out.
Layout = Literal["default", "reference"]


def save(
    tensors: Mapping[str, Any],
    path: Path,
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
        TypeError: a dtype that the format does not have, or a tensor without values. The message names the tensor.
        KeyboardInterrupt: Ctrl-C; nothing of it stays.
    """
    return _write(_Work(tensors, path, metadata, max_shard_size, stem, replace, sync, layout), progress)


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

    Args:
        snapshot: copy the tensors first, so that training can change them meanwhile. If it is false they must stay as
            they are until the writing is done.
        tensors, path, metadata, max_shard_size, stem, replace, sync, layout: as for `save`.

    Raises:
        TypeError, ValueError: what can be said before anything is written; all else is raised by `Pending.wait`.
    """
    work = _Work(tensors, path, metadata, max_shard_size, stem, replace, sync, layout)
    if snapshot:
        work.entries = [(name, kind, shape, _copied(data)) for name, kind, shape, data in work.entries]
    return Pending(work)


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
    def __init__(
        self,
        tensors: Mapping[str, Any],
        path: Path,
        metadata: Mapping[str, str] | None,
        max_shard_size: int | str | None,
        stem: str,
        replace: bool,
        sync: bool,
        layout: Layout,
    ) -> None:
        if isinstance(path, str) and "://" in path and _sources.local(path) is None:
            raise ValueError(f"{path!r} is a URL, and files are written to paths: write to_bytes() to it with fsspec")
        self.path = os.fsdecode(path)
        self.metadata = _strings(metadata)
        self.most = None if max_shard_size is None else size(max_shard_size)
        self.stem = stem
        self.options: dict[str, Any] = {"replace": replace, "sync": sync, "layout": layout}
        self.entries = _frameworks.entries(_mapping(tensors))


def _mapping(tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"a mapping of names and tensors is written, not a {type(tensors).__name__}")
    return tensors


def _strings(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if metadata is None:
        return None
    for key, value in metadata.items():
        for text in (key, value):
            if not isinstance(text, str):
                raise TypeError(f"metadata[{key!r}]: keys and values are strings, not {type(text).__name__}")
    return dict(metadata)


def _write(work: _Work, progress: bool | Tell | None) -> list[str]:
    with follow(progress, "saving") as told:
        if work.most is None:
            _weigh.save(work.path, work.entries, work.metadata, progress=told, **work.options)
            return [work.path]
        paths = _weigh.save_sharded(
            work.path, work.entries, work.most, work.metadata, stem=work.stem, progress=told, **work.options
        )
        return [os.fspath(path) for path in paths]


def _copied(data: Any) -> Any:
    # An address and a length have an owner; all else is bytes.
    if hasattr(data, "owner"):
        return type(data)(data.owner.clone())
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

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def size(given: int | str) -> int:
    """Bytes of a number, or of a text as ``"5GB"`` (decimal), ``"5GiB"`` or ``"5G"`` (binary).

    Raises:
        ValueError: that is no size, or less than one byte.
    """
    if isinstance(given, str):
        digits = given.strip().rstrip(_LETTERS)
        try:
            unit = _UNITS[given.strip()[len(digits) :].lower()]
            number = int(float(digits) * unit) if "." in digits else int(digits) * unit
        except (KeyError, ValueError, OverflowError):
            raise ValueError(f"{given!r} is no size: write 5GB or 5GiB") from None
    else:
        number = int(given)
    if number < 1:
        raise ValueError("a file has room for one byte at least")
    return number
