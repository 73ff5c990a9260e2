"""Checkpoints: opened, listed, read."""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import IO, Any, Literal, NoReturn, Protocol, Union

from weigh import _frameworks, _sources, _weigh
from weigh._errors import Finding, SliceError, WeighError
from weigh._progress import Tell, follow
from weigh._weigh import Tensor

#: What `Checkpoint.stream` may hold in memory at a time unless told otherwise, in bytes.
BUDGET = 1 << 30

#: The least that it may, in bytes.
LEAST_BUDGET = 1 << 20


class OpenFile(Protocol):
    """What ``fsspec.open`` gives, before it is entered."""

    @property
    def fs(self) -> Any:
        """Its file system."""

    @property
    def path(self) -> str:
        """Where it is there."""


#: What can be opened.
Source = Union[
    str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", bytearray, memoryview, mmap.mmap, IO[bytes], OpenFile
]

#: Names: one or several, each a name that is there, or else a glob.
Names = Union[str, Iterable[str]]


def open(path: Source, *, strict: bool = False, max_header: int | None = None) -> Checkpoint:  # noqa: A001
    """Opens a checkpoint: one or more files as one set of tensors. Reads headers and nothing else.

    Args:
        path: a ``.safetensors`` file, a folder with some, or a shard index (``str``, ``bytes`` or ``os.PathLike``);
            the URL of a file that fsspec knows (``"s3://…"``, ``"memory://…"``), or what ``fsspec.open`` gives; a
            binary file object that can seek; or a file's content, as a ``bytearray``, a ``memoryview``, an ``mmap`` or
            whatever else has the buffer protocol, which is looked at where it is.
        strict: refuse what is against the format in any way, not only what is unsound.
        max_header: the largest header to read, in bytes; 100 000 000 by default.

    Returns:
        A `Checkpoint`.

    Raises:
        OSError: a file is not there, or cannot be read.
        FormatError: a file is not sound.
        WeighError: the path does not stand for one checkpoint: ``code`` is ``"nothing-found"`` or
            ``"several-checkpoints"``, whose message names them.
    """
    return Checkpoint._of(path, strict, max_header)


def load(
    path: Source,
    names: Names | Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
    max_header: int | None = None,
    exclude: Names | None = None,
    dtype: str | None = None,
    framework: str | None = None,
    device: Any = None,
    progress: bool | Tell | None = None,
    overcommit: bool = False,
) -> dict[str, Any]:
    """Opens a checkpoint and loads it, or some of its tensors.

    Args:
        path, strict, max_header: as for `open`.
        names, exclude, dtype, framework, device, progress, overcommit: as for `Checkpoint.load`.

    Returns:
        A ``dict`` of names and tensors.

    Raises:
        Whatever `open` and `Checkpoint.load` raise.
    """
    return open(path, strict=strict, max_header=max_header).load(
        names,
        exclude=exclude,
        dtype=dtype,
        framework=framework,
        device=device,
        progress=progress,
        overcommit=overcommit,
    )


def check(path: Source) -> list[Finding]:
    """Everything found in a checkpoint's headers, notes included; an empty list if there is nothing to say.

    Args:
        path: as for `open`; of a folder with several checkpoints, all are checked.

    Returns:
        A list of `Finding`. What has the severity ``"error"`` makes the file invalid.

    Raises:
        OSError: a file is not there, or cannot be read.
        WeighError: the folder has no such file in it.
    """
    return _sources.checked(path)


class Piece:
    """A part of a tensor that is larger than the budget of a stream has room for.

    Attributes:
        tensor: its elements, in one dimension, in the way of the framework.
        shape: the shape of all that was asked for of the tensor.
        start: the number of its first element, as they lie in memory, the last dimension fastest.
        stop: the number after its last element.
        is_last: whether it is the last of its tensor.
    """

    __slots__ = ("tensor", "shape", "start", "stop", "is_last")

    def __init__(self, tensor: Any, shape: tuple[int, ...], start: int, stop: int, is_last: bool) -> None:
        self.tensor = tensor
        self.shape = shape
        self.start = start
        self.stop = stop
        self.is_last = is_last

    def __repr__(self) -> str:
        return f"Piece({self.start}:{self.stop} of {self.shape})"


class Checkpoint(Mapping[str, Tensor]):
    """One or more files opened as one set of tensors, by name, in natural order: ``layers.2`` before ``layers.10``.

    The values are `Tensor`s: their dtypes and shapes are known, and their bytes stay in the files until they are
    asked for. Closing is not needed: ``with`` is allowed and does nothing. What was read lives on by itself. Any
    thread may use it, several at a time. It is made by `open`, and pickled as the path that it was opened by.
    """

    __slots__ = ("_native", "_opened", "_sorted", "__weakref__")

    def __init__(self, native: _weigh.Checkpoint, opened: tuple[str, bool, int | None] | None = None) -> None:
        self._native = native
        self._opened = opened
        #: The names, once they were asked for: they never change.
        self._sorted: list[str] | None = None

    @classmethod
    def _of(cls, path: Any, strict: bool, max_header: int | None) -> Checkpoint:
        native = _sources.opened(path, strict=strict, max_header=max_header)
        found = _sources.local(path)
        return cls(native, None if found is None else (os.path.abspath(found), strict, max_header))

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._native

    def __getitem__(self, name: str) -> Tensor:
        return self._native.tensor(name)

    def keys(self) -> KeysView[str]:
        """The names, in natural order."""
        return KeysView(self)

    def items(self) -> ItemsView[str, Tensor]:
        """Pairs of names and `Tensor`s, in natural order."""
        return _Items(self)

    def values(self) -> ValuesView[Tensor]:
        """The `Tensor`s, in the natural order of their names."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __copy__(self) -> Checkpoint:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Checkpoint:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opened is None:
            raise TypeError("only a checkpoint that was opened by a path is pickled, and this one was not")
        return _reopened, self._opened

    def __repr__(self) -> str:
        return f"<weigh.Checkpoint {self.path!r}: {len(self)} tensors, {self.nbytes} bytes>"

    @property
    def path(self) -> str:
        """What it is called: the path or the name of the source that it was opened from."""
        return self._native.path

    @property
    def files(self) -> list[str]:
        """The paths of its files."""
        return self._native.files()

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of all files together, a new ``dict``; of a key with several values, the first."""
        return self._native.metadata()

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, as they are in the files."""
        return self._native.nbytes

    def select(self, include: Names | None = None, exclude: Names | None = None) -> list[str]:
        """The names that names and globs select. ``*`` crosses dots.

        A text that is the name of a tensor means that one, whatever characters it has; any other is a glob.

        Args:
            include: a name or glob, or several; all names by default, none if it is empty.
            exclude: a name or glob, or several, that are left out.

        Returns:
            The names in the order that was asked for, each once; those of one glob in natural order.

        Raises:
            TensorNotFoundError: one of them selects nothing.
            WeighError: one of them is no glob; ``code`` is ``"glob"``.
        """
        chosen = list(self._names()) if include is None else self._named(include)
        if exclude is None:
            return chosen
        dropped = set(self._named(exclude))
        return [name for name in chosen if name not in dropped]

    def load(
        self,
        names: Names | Mapping[str, Any] | None = None,
        *,
        exclude: Names | None = None,
        dtype: str | None = None,
        framework: str | None = None,
        device: Any = None,
        progress: bool | Tell | None = None,
        overcommit: bool = False,
    ) -> dict[str, Any]:
        """Reads tensors into memory of their own: one allocation, by several threads, without the interpreter's lock.

        Args:
            names: which, as for `select`: all by default. A ``dict`` of names (no globs) and indices reads slices:
                ``{"w": (slice(0, 4), ...), "b": None}``, where ``None`` is all of it.
            exclude: names and globs to leave out.
            dtype: the name of a float dtype of the format (``"F64"``, ``"F32"``, ``"F16"``, ``"BF16"``, in letters of
                either case) that all floats are converted to while they are read.
            framework: ``"numpy"`` (default), ``"torch"`` (default if a device is given), ``"jax"``, ``"mlx"``,
                ``"tensorflow"`` or ``"paddle"``.
            device: where the tensors go, as the framework names it.
            progress: ``True`` for a bar (needs tqdm), or a callable that is told the bytes done and those in all, some
                20 times a second and at the end. What it raises stops the reading.
            overcommit: try even if less memory is free than this takes.

        Returns:
            A ``dict`` of names and tensors, in the order that was asked for.

        Raises:
            TensorNotFoundError: there is no such tensor.
            SliceError: a tensor has no such slice.
            MemoryError: there is less memory than this takes. Nothing was read.
            OSError: a file could not be read, or was changed meanwhile.
            TypeError: the framework has no such dtype. The message names the tensor.
            RuntimeError: the file object that it was opened with asks for it while it is read.
            KeyboardInterrupt: Ctrl-C; nothing is kept.
        """
        floats = _frameworks.floats(dtype)
        home = _frameworks.module(_framework(framework, device))
        wants = self._wants(names, exclude)
        target = home.target(device)
        with follow(progress, "loading") as told:
            staged = _frameworks.staged(home, target)
            if staged is not None:
                return dict(staged.load(self._native, wants, floats=floats, progress=told))
            buffers = self._native.read(wants, floats=floats, progress=told, overcommit=overcommit)
        # Each buffer is let go of as soon as its tensor is there: where that is a copy, the memory is.
        buffers.reverse()
        return {name: _frameworks.made(home, name, buffers.pop(), target) for name, _ in wants}

    def stream(
        self,
        names: Names | Mapping[str, Any] | None = None,
        *,
        exclude: Names | None = None,
        budget: int = BUDGET,
        order: Literal["file", "given"] = "file",
        dtype: str | None = None,
        framework: str | None = None,
        device: Any = None,
        pieces: bool = False,
        patience: float = 30.0,
    ) -> Stream:
        """Reads tensors one after another, ahead of whoever uses them, as far as a memory budget goes.

        What has been handed out counts until it is dropped, so memory never exceeds the budget. ``for name, tensor``
        holds one tensor while the next is waited for; ``del tensor`` at the end of the loop's body frees its room.

        Args:
            names, exclude, dtype, framework, device: as for `load`.
            budget: bytes in memory at a time, at least 1 MiB. Tensors below 64 KiB share memory with those that were
                read with them, and count until all of these are dropped.
            order: ``"file"`` for as they lie in the files, the fastest, or ``"given"`` for as they were asked for.
            pieces: yield a `Piece` for each part of a tensor that is larger than the budget has room for; by default
                that is an error.
            patience: seconds to wait for tensors to be dropped before that is an error.

        Returns:
            A `Stream`, an iterator of pairs of a name and a tensor, or a `Piece`.

        Raises:
            What `load` raises; and `WeighError`, whose ``code`` is ``"budget"`` for a tensor that has no room, or
            ``"budget-held"`` if those that were handed out leave none; ``ValueError`` for a budget below 1 MiB.
        """
        if operator.index(budget) < LEAST_BUDGET:
            raise ValueError(f"a budget of {budget} bytes is too small: it is at least 1 MiB, {LEAST_BUDGET} bytes")
        if order not in ("file", "given"):
            raise ValueError(f'{order!r} is no order: it is "file" or "given"')
        home = _frameworks.module(_framework(framework, device))
        target = home.target(device)
        native = self._native.stream(
            self._wants(names, exclude),
            budget=budget,
            in_file_order=order == "file",
            floats=_frameworks.floats(dtype),
            patience=patience,
        )
        return Stream(native, home, target, pieces)

    def _wants(
        self, names: Names | Mapping[str, Any] | None, exclude: Names | None
    ) -> list[tuple[str, Any]]:
        if isinstance(names, Mapping):
            if exclude is not None:
                raise ValueError("names with slices are given one by one: there is nothing to exclude")
            return [(_name(name), _index(name, index)) for name, index in names.items()]
        if names is None and exclude is None:
            return [(name, None) for name in self._names()]
        return [(name, None) for name in self.select(names, exclude)]

    def _names(self) -> list[str]:
        """The names, in natural order: a list for nobody to change."""
        if self._sorted is None:
            self._sorted = self._native.names()
        return self._sorted

    def _named(self, names: Names) -> list[str]:
        native = self._native
        found: dict[str, None] = {}
        for name in [names] if isinstance(names, str) else names:
            if _name(name) in native:
                found[name] = None
            else:
                found.update(dict.fromkeys(self._globbed(name)))
        return list(found)

    def _globbed(self, glob: str) -> list[str]:
        try:
            return self._native.select([glob], [])
        except WeighError:
            raise
        except ValueError as error:
            raise WeighError(
                _frameworks.shortened(repr(str(error))[1:-1]), "glob", "Escape what is meant as it is with a backslash: `\\[` is one bracket."
            ) from None


class Stream(Iterator[tuple[str, Any]]):
    """Tensors one after another, as `Checkpoint.stream` gives them. Any thread may take the next.

    Leaving a ``with`` block, or dropping it, ends the reading, as `close` does.
    """

    __slots__ = ("_native", "_home", "_target", "_pieces")

    def __init__(self, native: _weigh.Stream, home: Any, target: Any, pieces: bool) -> None:
        self._native = native
        self._home = home
        self._target = target
        self._pieces = pieces

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> tuple[str, Any]:
        name, buffer, shape, (start, stop), is_last = next(self._native)
        is_whole = start == 0 and is_last
        if not is_whole and not self._pieces:
            self.close()
            raise WeighError(
                f"{name}: the tensor is larger than the budget has room for",
                "budget",
                "Raise the budget, or take the pieces with pieces=True.",
            )
        try:
            tensor = _frameworks.made(self._home, name, buffer, self._target)
        except BaseException:
            self.close()
            raise
        return name, tensor if is_whole else Piece(tensor, tuple(shape), start, stop, is_last)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream is not pickled")

    def close(self) -> None:
        """Ends the reading. What has been handed out stays; there is no next one."""
        self._native.close()


class _Items(ItemsView[str, Tensor]):
    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self._checkpoint = checkpoint

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        # Names, and the tensors of these: one sorting for both.
        return zip(*self._checkpoint._native.tensors(), strict=True)

    def __contains__(self, item: object) -> bool:
        # Two views of a tensor are not equal: there is nothing to compare.
        return False


class _Values(ValuesView[Tensor]):
    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self._checkpoint = checkpoint

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._checkpoint._native.tensors()[1])


def _reopened(path: str, strict: bool, max_header: int | None) -> Checkpoint:
    return Checkpoint._of(path, strict, max_header)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"names of tensors are strings, not {type(name).__name__}")
    return name


def _index(name: str, index: Any) -> Any:
    """The index, if it is one: arrays look like integers to native code, and are none."""
    for part in index if isinstance(index, tuple) else (index,):
        if part is None and part is not index:
            raise SliceError(f"{name}: None is all of a tensor, and no index of a dimension", "slice")
        for bound in (part.start, part.stop, part.step) if isinstance(part, slice) else (part,):
            try:
                if bound is not None and bound is not ...:
                    operator.index(bound)
            except TypeError:
                kind = type(bound).__name__
                raise SliceError(
                    f"{name}: a tensor is indexed by integers, slices of integers and ..., not by {kind}", "slice"
                ) from None
    return index


def _framework(framework: str | None, device: Any) -> str:
    if framework is not None:
        return framework
    return "numpy" if device is None else "torch"
