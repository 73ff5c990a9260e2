"""Checkpoints: opened, listed, read."""

from __future__ import annotations

import os
from collections.abc import Mapping

from weigh import _frameworks, _sources, _weigh
from weigh._progress import follow

#: What `stream` may hold in memory at a time unless told otherwise, in bytes.
BUDGET = 1 << 30


def open(path, *, strict=False, max_header=None):  # noqa: A001
    """Opens a checkpoint: one or more files as one set of tensors. Reads headers and nothing else.

    Args:
        path: a ``.safetensors`` file, a folder with some, or a shard index (``str``, ``bytes`` or ``os.PathLike``);
            the URL of a file that fsspec knows (``"s3://…"``, ``"memory://…"``); or a binary file object, which
            is read at offsets if it can seek.
        strict: refuse what is against the format in any way, not only what is unsound.
        max_header: the largest header to read, in bytes; 100 000 000 by default.

    Returns:
        A `Checkpoint`.

    Raises:
        OSError: a file is not there, or cannot be read.
        FormatError: a file is not sound.
        WeighError: the path does not stand for one checkpoint.
    """
    return Checkpoint(_sources.opened(path, strict=strict, max_header=max_header))


def check(path):
    """Everything found in a checkpoint's headers, notes included; an empty list if there is nothing to say.

    Args:
        path: as for `open`; of a folder with several checkpoints, all are checked.

    Returns:
        A list of `Finding`. What has the severity ``"error"`` makes the file invalid.

    Raises:
        OSError: a file is not there, or cannot be read.
    """
    local = _sources.local(path)
    if local is not None:
        return _weigh.check(local)
    return _weigh.check_bytes(_sources.content(path))


class Piece:
    """A part of a tensor that is larger than the budget of a stream.

    Attributes:
        tensor: its elements, in one dimension, in the way of the framework.
        shape: the shape of the whole tensor.
        start: the number of its first element, as they lie in memory, the last dimension fastest.
        stop: the number after its last element.
        is_last: whether it is the last of its tensor.
    """

    __slots__ = ("tensor", "shape", "start", "stop", "is_last")

    def __init__(self, tensor, shape, start, stop, is_last):
        self.tensor = tensor
        self.shape = shape
        self.start = start
        self.stop = stop
        self.is_last = is_last

    def __repr__(self):
        return f"Piece({self.start}:{self.stop} of {self.shape})"


class Checkpoint(Mapping):
    """One or more files opened as one set of tensors, by name, in natural order.

    The values are `Tensor`s: their dtypes and shapes are known, and their bytes stay in the files until they are
    asked for. Closing is not needed; what was read lives on by itself.
    """

    __slots__ = ("_native",)

    def __init__(self, native):
        self._native = native

    def __len__(self):
        return len(self._native)

    def __iter__(self):
        return iter(self._native.names())

    def __contains__(self, name):
        return name in self._native

    def __getitem__(self, name):
        return self._native.tensor(name)

    def keys(self):
        """The names, in natural order: ``layers.2`` before ``layers.10``."""
        return self._native.names()

    def items(self):
        """Pairs of names and `Tensor`s."""
        return self._native.tensors()

    def values(self):
        """The `Tensor`s."""
        return [tensor for _, tensor in self._native.tensors()]

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __repr__(self):
        return f"<weigh.Checkpoint {os.fspath(self.path)!r}: {len(self)} tensors, {self.nbytes} bytes>"

    @property
    def path(self):
        """What it is called."""
        return self._native.path

    @property
    def files(self):
        """The paths of its files."""
        return self._native.files()

    @property
    def metadata(self):
        """The metadata of all files together, a ``dict`` of strings; of a key with several values, the first."""
        return self._native.metadata()

    @property
    def nbytes(self):
        """Bytes of all tensors."""
        return self._native.nbytes

    def select(self, include=None, exclude=None):
        """The names that globs select, in natural order. ``*`` crosses dots.

        Args:
            include: a glob or several, of which a name has to match one; all names by default.
            exclude: a glob or several, of which it may match none.

        Raises:
            TensorNotFoundError: a pattern matches no name.
        """
        return self._native.select(_several(include), _several(exclude))

    def load(self, names=None, *, exclude=None, dtype=None, framework=None, device=None, progress=None, overcommit=False):
        """Reads tensors into memory of their own: one allocation, by several threads, without the interpreter's lock.

        Args:
            names: which: a name or glob, several, or all by default. A ``dict`` of names and indices reads slices:
                ``{"w": (slice(0, 4), ...), "b": None}``.
            exclude: a glob or several of names to leave out.
            dtype: a float dtype of the format (``"F64"``, ``"F32"``, ``"F16"``, ``"BF16"``) that all floats are
                converted to while they are read.
            framework: ``"numpy"`` (default), ``"torch"`` (default if a device is given), ``"jax"``, ``"mlx"``,
                ``"tensorflow"`` or ``"paddle"``.
            device: where the tensors go, as the framework names it.
            progress: ``True`` for a bar (needs tqdm), or a callable that is told the bytes done and those in all.
            overcommit: try even if less memory is free than this takes.

        Returns:
            A ``dict`` of names and tensors, in the order that was asked for.

        Raises:
            TensorNotFoundError, SliceError, MemoryError, OSError
        """
        convert = _frameworks.converter(_framework(framework, device))
        wants = self._wants(names, exclude)
        with follow(progress, "loading") as told:
            buffers = self._native.read(wants, floats=dtype, progress=told, overcommit=overcommit)
        return {name: convert(buffer, device) for (name, _), buffer in zip(wants, buffers, strict=True)}

    def stream(
        self,
        names=None,
        *,
        exclude=None,
        budget=BUDGET,
        order="file",
        dtype=None,
        framework=None,
        device=None,
        pieces=False,
        patience=30.0,
    ):
        """Reads tensors one after another, ahead of whoever uses them, as far as a memory budget goes.

        What has been handed out counts until it is dropped, so memory never exceeds the budget.

        Args:
            names, exclude, dtype, framework, device: as for `load`.
            budget: bytes in memory at a time.
            order: ``"file"`` for as they lie in the files, the fastest, or ``"given"`` for as they were asked for.
            pieces: yield a `Piece` for each part of a tensor that is larger than the budget has room for; by default
                that is an error.
            patience: seconds to wait for tensors to be dropped before that is an error.

        Yields:
            Pairs of a name and a tensor, or a `Piece`.
        """
        if order not in ("file", "given"):
            raise ValueError(f'{order!r} is no order: it is "file" or "given"')
        convert = _frameworks.converter(_framework(framework, device))
        wanted = [name for name, _ in self._wants(names, exclude)]
        stream = self._native.stream(
            wanted, budget=budget, in_file_order=order == "file", floats=dtype, patience=patience
        )
        return _streamed(stream, convert, device, pieces)

    def _wants(self, names, exclude):
        if isinstance(names, Mapping):
            if exclude is not None:
                raise ValueError("names with slices are given one by one: there is nothing to exclude")
            return [(name, index) for name, index in names.items()]
        include = _several(names)
        if exclude is None and include and all(name in self._native for name in include):
            return [(name, None) for name in dict.fromkeys(include)]
        return [(name, None) for name in self._native.select(include, _several(exclude))]


def _several(names):
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def _framework(framework, device):
    if framework is not None:
        return framework
    return "numpy" if device is None else "torch"


def _streamed(stream, convert, device, pieces):
    from weigh._errors import WeighError

    try:
        while True:
            try:
                name, buffer, shape, (start, stop), is_last = next(stream)
            except StopIteration:
                return
            is_whole = start == 0 and is_last
            if not is_whole and not pieces:
                raise WeighError(
                    f"{name} is larger than the budget has room for",
                    "budget",
                    "Raise the budget, or take the pieces with pieces=True.",
                )
            tensor = convert(buffer, device)
            del buffer
            yield name, tensor if is_whole else Piece(tensor, tuple(shape), start, stop, is_last)
            # Held here, it would count while the next one is waited for.
            del tensor
    finally:
        stream.close()
