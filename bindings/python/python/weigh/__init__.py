"""Model weights in the safetensors format: look inside, check, load, write.

>>> import weigh
>>> checkpoint = weigh.open("model")                  # a file, a folder or an index; reads headers only
>>> checkpoint["wte.weight"].shape
(50257, 768)
>>> checkpoint["wte.weight"][:1000, ::2].numpy()      # reads what the slice takes
>>> checkpoint.load("h.0.*", framework="torch")       # one allocation, read in parallel
>>> weigh.save({"w": array}, "new.safetensors")       # there whole, or not at all

>>> weigh.scan("model.pt")[0].verdict                 # what loading it would run, without running it
>>> weigh.convert("model.pt", "model.safetensors")    # checkpoints of torch, read as data

Nothing in a file is ever run. `weigh.torch` loads checkpoints of torch; `weigh.safetensors` has the names of the package ``safetensors``.
"""

from weigh._errors import (
    CancelledError,
    Finding,
    FormatError,
    SliceError,
    TensorNotFoundError,
    WeighError,
)
from weigh._weigh import Buffer, Tensor, __version__

__all__ = [
    "Buffer",
    "CancelledError",
    "Checkpoint",
    "Conversion",
    "Finding",
    "FormatError",
    "Pending",
    "Piece",
    "Scan",
    "SliceError",
    "Stream",
    "Tensor",
    "TensorNotFoundError",
    "WeighError",
    "__version__",
    "check",
    "convert",
    "load",
    "open",
    "safetensors",
    "save",
    "save_async",
    "scan",
    "to_bytes",
    "torch",
]

_HOMES = {
    "Checkpoint": "weigh._checkpoint",
    "Piece": "weigh._checkpoint",
    "Stream": "weigh._checkpoint",
    "check": "weigh._checkpoint",
    "load": "weigh._checkpoint",
    "open": "weigh._checkpoint",
    "Conversion": "weigh._convert",
    "convert": "weigh._convert",
    "Pending": "weigh._save",
    "Scan": "weigh._scan",
    "scan": "weigh._scan",
    "save": "weigh._save",
    "save_async": "weigh._save",
    "to_bytes": "weigh._save",
}


def __getattr__(name):
    # What is not needed is not imported: `import weigh` takes a few milliseconds.
    import importlib

    if name in ("safetensors", "torch"):
        return importlib.import_module(f"weigh.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weigh' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__():
    return sorted(set(__all__) | set(globals()))
