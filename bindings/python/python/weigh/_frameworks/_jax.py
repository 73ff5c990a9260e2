"""jax: arrays on its devices.

On the CPU an array looks at the buffer where it is. 64-bit types are there only with ``jax_enable_x64``: without it,
floats are rounded to 32 bits as jax does, and integers that 32 bits cannot hold are an error.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from weigh._frameworks import _numpy

#: Types that DLPack and jax agree on.
_DLPACK = frozenset(("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "BF16", "F32", "F64", "C64"))

#: What becomes of 64-bit types if jax has none.
_NARROWED = {"I64": np.int32, "U64": np.uint32, "F64": np.float32}

#: Types that jax has not, though ml_dtypes has.
_MISSING = frozenset(("F6_E2M3", "F6_E3M2"))


def target(device: Any) -> Any:
    """The device of jax: its own object, or what ``"cpu"``, ``"gpu:1"``, … names."""
    if not isinstance(device, str):
        return device
    platform, _, number = device.partition(":")
    devices = jax.devices(platform)
    place = int(number or 0)
    if place >= len(devices):
        raise ValueError(f"jax has no device {device!r}: there are {len(devices)} of {platform!r}")
    return devices[place]


def tensor(buffer: Any, device: Any = None) -> Any:
    """An array on a device; by default on jax's own choice."""
    name = buffer.dtype
    if name in _MISSING:
        raise TypeError(f"jax has no dtype for {name}: load it with numpy")
    if name in _NARROWED and not getattr(jax.config, "jax_enable_x64"):
        made = jnp.asarray(_narrowed(_numpy.tensor(buffer), name))
    elif name in _DLPACK and buffer.nbytes:
        made = jnp.from_dlpack(buffer)
    else:
        made = jnp.asarray(_numpy.tensor(buffer))
    device = target(device)
    if device is None:
        device = getattr(jax.config, "jax_default_device") or jax.devices()[0]
        device = target(device) if isinstance(device, str) else device
    return made if device in made.devices() else jax.device_put(made, device)


def _narrowed(array: Any, name: str) -> Any:
    like: Any = _NARROWED[name]
    if name != "F64" and array.size:
        limits = np.iinfo(like)
        if array.min() < limits.min or array.max() > limits.max:
            raise OverflowError(
                f"jax has no 64-bit integers unless it is told to, and 32 bits are too few for {name} as large as "
                "these: set jax_enable_x64"
            )
    with np.errstate(over="ignore"):
        return array.astype(like)


def entry(name: str, array: Any, own: bool = False) -> tuple[str, str, Any, Any]:
    """What is written for an array, in memory that nobody else has if that is asked for."""
    # What other devices have has been copied from there.
    is_shared = all(device.platform == "cpu" for device in array.devices()) if own else False
    return _numpy.entry(name, np.asarray(array), is_shared)
