"""jax: arrays on its devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from weigh._frameworks import _numpy


def tensor(buffer, device=None):
    """An array on a device; by default on jax's own choice. 64-bit types are what jax is set to make of them."""
    array = _numpy.tensor(buffer)
    if device is None or device == "cpu":
        return jnp.asarray(array)
    return jax.device_put(array, _device(device))


def _device(device):
    if not isinstance(device, str):
        return device
    platform, _, number = device.partition(":")
    return jax.devices(platform)[int(number or 0)]


def entry(name, array):
    """What is written for an array."""
    return _numpy.entry(name, np.asarray(array))
