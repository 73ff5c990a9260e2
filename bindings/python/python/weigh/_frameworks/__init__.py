"""How tensors of the frameworks are made of bytes, and the other way around.

Each module here has ``target(device)``, which says before anything is read whether there is such a device;
``tensor(buffer, device)``, what it makes of a `Buffer`; and ``entry(name, tensor, own)``, what native code writes:
``(name, dtype, shape, bytes)``, the bytes in memory that nobody else has if ``own`` is true. A framework is imported
when it is first asked for.
"""

from __future__ import annotations

import importlib
import mmap
import sys
from collections.abc import Callable, Mapping
from typing import Any

from weigh import _weigh
from weigh._errors import WeighError

#: The frameworks by what they are called.
NAMES = {
    "numpy": "numpy",
    "np": "numpy",
    "torch": "torch",
    "pt": "torch",
    "pytorch": "torch",
    "jax": "jax",
    "flax": "jax",
    "mlx": "mlx",
    "tensorflow": "tensorflow",
    "tf": "tensorflow",
    "paddle": "paddle",
    "paddlepaddle": "paddle",
}

#: What native code writes: a name, a dtype, a shape, and bytes or their address and number.
Entry = tuple[str, str, Any, Any]


def module(framework: str) -> Any:
    """The module for a framework."""
    name = NAMES.get(framework)
    if name is None:
        known = ", ".join(sorted(set(NAMES.values())))
        raise ValueError(f"there is no framework {framework!r}: it is one of {known}")
    try:
        return importlib.import_module(f"weigh._frameworks._{name}")
    except ModuleNotFoundError as error:
        package = "paddlepaddle" if name == "paddle" else name
        message = f"tensors of {name} need {error.name}: pip install {package}"
        raise ModuleNotFoundError(message, name=error.name) from error


def converter(framework: str) -> Callable[..., Any]:
    """What makes a tensor of a framework from a buffer and a device."""
    return module(framework).tensor  # type: ignore[no-any-return]


def shortened(name: str) -> str:
    """A name for a message, which need not be a megabyte long."""
    return name if len(name) <= 200 else f"{name[:200]}…"


def made(home: Any, name: str, buffer: _weigh.Buffer, device: Any) -> Any:
    """The tensor of this name. What a framework cannot do is said with the name."""
    try:
        return home.tensor(buffer, device)
    except (TypeError, OverflowError, ValueError) as error:
        message = f"{shortened(name)}: {error}"
        if isinstance(error, WeighError):
            raise type(error)(message, error.code, error.help, error.findings) from error
        kind = next(kind for kind in (TypeError, OverflowError, ValueError) if isinstance(error, kind))
        raise kind(message) from error


#: The float dtypes that there are conversions to.
FLOATS = ("F64", "F32", "F16", "BF16")


def floats(dtype: Any) -> str | None:
    """The name of the float dtype that floats are converted to, in capital letters; ``None`` for none.

    Raises:
        TypeError: it is not a name.
        WeighError: there is no such dtype, or no conversion to it.
    """
    if dtype is None:
        return None
    if not isinstance(dtype, str):
        raise TypeError(f'a dtype is given by its name in the format, as "F32", not as {dtype!r}')
    name = dtype.upper()
    if name not in FLOATS:
        raise WeighError(
            f"{dtype!r} is no dtype that floats can be converted to",
            "cast-not-target",
            f"Give one of {', '.join(FLOATS)}.",
        )
    return name


def converted(framework: str, tensor: Any, dtype: Any, device: Any) -> Any:
    """What a lazy tensor is in a framework; there has to be such a device before anything is read."""
    home = module(framework)
    target = home.target(device)
    return made(home, tensor.name, tensor.read(dtype), target)


def staged(home: Any, device: Any) -> Any:
    """What loads onto a device by way of memory that is staged for it; ``None`` for all other devices."""
    stage = getattr(home, "staged", None)
    return None if stage is None else stage(device)


#: Where the classes of tensors come from, by the first name of their module.
_HOMES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "mlx": "mlx",
    "tensorflow": "tensorflow",
    "paddle": "paddle",
}


def entries(tensors: Mapping[str, Any], own: bool = False) -> list[Entry]:
    """What native code writes for each of a mapping of names and tensors, of any frameworks.

    Args:
        own: whether the bytes have to be in memory that nobody else has: they are copied if they are not, once.
    """
    found = []
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"names of tensors are strings, not {type(name).__name__}")
        found.append(_entry(name, tensor, own))
    return found


def _entry(name: str, tensor: Any, own: bool) -> Entry:
    if isinstance(tensor, _weigh.Tensor):
        made = tensor.read()
        return name, made.dtype, made.shape, made
    if isinstance(tensor, _weigh.Buffer):
        return name, tensor.dtype, tensor.shape, _copied(tensor) if own else tensor
    for base in type(tensor).__mro__:
        home = _HOMES.get(base.__module__.partition(".")[0])
        if home is not None:
            return module(home).entry(name, tensor, own)  # type: ignore[no-any-return]
    if isinstance(tensor, Mapping):
        raise TypeError(f"{name}: a {type(tensor).__name__} is no tensor: give each of its tensors a name of its own")
    return module("numpy").entry(name, tensor, own)  # type: ignore[no-any-return]


#: Bytes that are copied at a time while the interpreter's lock is held: others take turns in between.
_PIECE = 1 << 20


def _copied(buffer: _weigh.Buffer) -> Any:
    """Memory with the same bytes, without any framework."""
    # Nothing but pages that are not there yet: not even zeros are written before the bytes are.
    made = mmap.mmap(-1, max(buffer.nbytes, 1))
    with memoryview(buffer).cast("B") as source, memoryview(made) as target:
        for start in range(0, buffer.nbytes, _PIECE):
            target[start : start + _PIECE] = source[start : start + _PIECE]
    return memoryview(made)[: buffer.nbytes]


def is_little_endian() -> bool:
    """Whether this machine has the bytes of numbers as files have them."""
    return sys.byteorder == "little"
