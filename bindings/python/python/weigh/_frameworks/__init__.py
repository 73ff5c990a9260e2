"""How tensors of the frameworks are made of bytes, and the other way around.

Each module here has ``tensor(buffer, device)`` and ``entry(name, tensor)``: what it makes of a `Buffer`, and what
native code writes, ``(name, dtype, shape, bytes)``. A framework is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
import sys

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


def module(framework):
    """The module for a framework."""
    name = NAMES.get(framework)
    if name is None:
        known = ", ".join(sorted(set(NAMES.values())))
        raise ValueError(f"there is no framework {framework!r}: it is one of {known}")
    return importlib.import_module(f"weigh._frameworks._{name}")


def converter(framework):
    """What makes a tensor of a framework from a buffer and a device."""
    return module(framework).tensor


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


def entries(tensors):
    """What native code writes for each of a mapping of names and tensors, of any frameworks."""
    found = []
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"names of tensors are strings, not {type(name).__name__}")
        for base in type(tensor).__mro__:
            home = _HOMES.get(base.__module__.partition(".")[0])
            if home is not None:
                found.append(module(home).entry(name, tensor))
                break
        else:
            found.append(module("numpy").entry(name, tensor))
    return found


def is_little_endian():
    """Whether this machine has the bytes of numbers as files have them."""
    return sys.byteorder == "little"
