"""Checkpoints of torch and numpy: converted, without executing a byte of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from weigh import _sources, _weigh
from weigh._progress import Tell, follow
from weigh._save import Path, size

#: What becomes of complex numbers that the output has not.
Complex = Literal["refuse", "view-real"]

#: What becomes of integers with scales.
Quantized = Literal["refuse", "integers", "dequantize"]

#: What becomes of sparse tensors.
Sparse = Literal["refuse", "dense", "parts"]

#: What becomes of nested tensors.
Nested = Literal["refuse", "parts"]


class Conversion(NamedTuple):
    """What `convert` did."""

    #: The paths that were written, the index last.
    paths: list[str]
    #: Names that were not written with ``dedupe=True``, each with the name of the same elements that was.
    aliases: dict[str, str]
    #: Names of tensors that could not be converted, with ``partial=True``, and why.
    left_out: dict[str, str]


def convert(
    path: Path,
    target: Path,
    *,
    key: str | None = None,
    all: bool = False,  # noqa: A002
    allow_calls: bool = False,
    partial: bool = False,
    dedupe: bool = False,
    tied: Iterable[str] = (),
    strip: str | Iterable[str] = (),
    complex: Complex = "refuse",  # noqa: A002
    dequantize: bool = False,
    quantized: Quantized = "refuse",
    sparse: Sparse = "refuse",
    nested: Nested = "refuse",
    raw_bits: bool = False,
    ignore_crc: bool = False,
    max_shard_size: int | str | None = None,
    stem: str | None = None,
    values: Path | None = None,
    replace: bool = False,
    sync: bool = True,
    verify: bool = True,
    progress: bool | Tell | None = None,
) -> Conversion:
    """Converts a checkpoint of torch or numpy to safetensors, or any of these to ``.npz``. Nothing in it is executed.

    Args:
        path: a checkpoint of torch (``.pt``, ``.pth``, ``.bin``, ``.ckpt``), the index of several, a folder of these,
            an ``.npz`` or ``.npy``, or safetensors. Which it is is told by its bytes.
        target: the file; or the folder, if it is one, if its path ends as that of one, if ``max_shard_size`` is given,
            or if ``path`` is an index and this is no name of a file. A name that ends in ``.npz`` is an archive of
            numpy's arrays.
        key: where the state dict is: a key of the root, or keys with dots between. By default it is found in whatever
            is around it.
        all: every tensor, the optimizer's too.
        allow_calls: convert a file that calls something when it is unpickled. It is not called; what it would make
            stays opaque, but for modules, whose parameters and buffers are taken.
        partial: leave out tensors that cannot be converted.
        dedupe: write one of several names of the same elements; the metadata says which name is which.
        tied: with ``dedupe``, names that are dropped rather than others.
        strip: prefixes of names; the first that a name begins with is taken off.
        complex: what becomes of complex numbers that the output has not: they are refused, or a last dimension of two
            (``"view-real"``).
        dequantize: the same as ``quantized="dequantize"``.
        quantized: what becomes of integers with scales: they are refused, or written as ``"integers"`` with
            ``NAME.scale`` and ``NAME.zero_point`` beside them, or as the floats that they stand for
            (``"dequantize"``).
        sparse: what becomes of sparse tensors: they are refused, or written with all their zeros (``"dense"``), or as
            ``"parts"``: ``NAME.indices``, ``NAME.values`` and ``NAME.size``.
        nested: what becomes of nested tensors: they are refused, or written as ``"parts"``.
        raw_bits: write elements that the output has not as unsigned integers.
        ignore_crc: convert bytes that do not have their checksum.
        max_shard_size, stem, replace, sync, progress: as for `save`; nothing is replaced by default.
        values: a file for what is no tensor, as JSON.
        verify: read back what was written, before it takes its place, and compare.

    Returns:
        A `Conversion`.

    Raises:
        WeighError: the file is more than data, is damaged, or has tensors that cannot be converted.
        FileExistsError: there is a file at the target, and ``replace`` is false.
        OSError: as for `save`.
    """
    given = _given(
        key=key,
        all=all,
        allow_calls=allow_calls,
        partial=partial,
        complex=complex,
        dequantize=dequantize,
        quantized=quantized,
        sparse=sparse,
        nested=nested,
        raw_bits=raw_bits,
        ignore_crc=ignore_crc,
        strip=[strip] if isinstance(strip, str) else list(strip),
    )
    with follow(progress, "converting") as told:
        paths, aliases, left_out = _weigh.convert(
            _local(path),
            _local(target),
            given,
            most=None if max_shard_size is None else size(max_shard_size),
            stem=stem,
            dedupe=dedupe,
            tied=list(tied),
            values=None if values is None else _local(values),
            replace=replace,
            sync=sync,
            verify=verify,
            progress=told,
        )
    return Conversion([os.fspath(written) for written in paths], dict(aliases), dict(left_out))


#: What native code is told by truth.
_QUESTIONS = ("all", "allow_calls", "partial", "raw_bits", "ignore_crc")


def _given(**options: Any) -> dict[str, Any]:
    """What is wanted of a checkpoint, as native code is told: what is not given is not wanted."""
    rules = {"quantized": "refuse", "sparse": "refuse", "nested": "refuse"}
    if options.pop("dequantize", False):
        options["quantized"] = "dequantize"
    return {"strip": []} | rules | options | {name: bool(options.get(name)) for name in _QUESTIONS}


def _local(path: Any) -> str:
    found = _sources.local(path)
    if found is None:
        raise TypeError(f"paths of this machine are converted, not {path!r}"[:200])
    return found
