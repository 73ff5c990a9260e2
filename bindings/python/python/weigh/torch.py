"""Checkpoints of torch, loaded without unpickling: ``weigh.torch.load_checkpoint`` in the place of ``torch.load``."""

from __future__ import annotations

from typing import Any

from weigh import _frameworks, _weigh
from weigh._convert import Complex, Nested, Quantized, Sparse, _given, _local
from weigh._progress import Tell, follow
from weigh._save import Path

__all__ = ["load_checkpoint"]


def load_checkpoint(
    path: Path,
    *,
    key: str | None = None,
    all: bool = False,  # noqa: A002
    allow_calls: bool = False,
    partial: bool = False,
    complex: Complex = "refuse",  # noqa: A002
    dequantize: bool = False,
    quantized: Quantized = "refuse",
    sparse: Sparse = "refuse",
    nested: Nested = "refuse",
    ignore_crc: bool = False,
    device: Any = None,
    progress: bool | Tell | None = None,
) -> dict[str, Any]:
    """The state dict of a checkpoint, whatever wrote it: what ``torch.load`` gives, and nothing in it is executed.

    Args:
        path: a checkpoint of torch (``.pt``, ``.pth``, ``.bin``, ``.ckpt``), the index of several, a folder of these,
            an ``.npz`` or ``.npy``, or safetensors. Which it is is told by its bytes.
        key, all, allow_calls, partial, complex, dequantize, quantized, sparse, nested, ignore_crc: as for
            `weigh.convert`.
        device: where the tensors go, as torch names it; the CPU by default, wherever they were saved from.
        progress: as for `Checkpoint.load`.

    Returns:
        A ``dict`` of dotted names and torch tensors, contiguous, each with memory of its own: tensors that shared
        memory do so no more. None requires a gradient.

    Raises:
        WeighError: the file is more than data, is damaged, or has tensors that cannot be had; ``findings`` says more.
        OSError: it could not be read.
    """
    home = _frameworks.module("torch")
    target = home.target(device)
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
        ignore_crc=ignore_crc,
    )
    with follow(progress, "loading") as told:
        loaded = _weigh.load_checkpoint(_local(path), given, progress=told)
    loaded.reverse()
    made = {}
    while loaded:
        name, buffer = loaded.pop()
        made[name] = _frameworks.made(home, name, buffer, target)
    return made
