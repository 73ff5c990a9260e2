"""What a checkpoint is as safetensors, by torch and numpy alone: what the program is measured by.

Names are those of the documentation: keys and places joined by dots, from the state dict on.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy
import torch

from elements import REFUSED, SAFETENSORS

HOLDERS = ("state_dict", "model_state_dict", "model", "module", "net", "ema", "weights", "params")

# Of these the state of training is kept. They are no part of a state dict that is the root itself.
TRAINING = (
    "optimizer", "optimizers", "optimizer_state", "optimizer_states", "optimizer_state_dict",
    "optimizer_states_dict", "optim", "optim_state_dict", "scheduler", "schedulers", "scheduler_state_dict",
    "lr_scheduler", "lr_schedulers", "lr_scheduler_state_dict", "grad_scaler", "scaler", "rng_state", "rng_states",
    "random_state", "callbacks", "loops",
)  # fmt: skip


class Stored(NamedTuple):
    """A tensor as safetensors has it."""

    dtype: str
    shape: tuple
    data: bytes

    def __repr__(self):
        shown = self.data[:24].hex(" ", 4)
        return f"{self.dtype} {list(self.shape)} {len(self.data)} bytes: {shown}"


def stored(value):
    """A tensor, or an array, as safetensors has it."""
    if isinstance(value, numpy.ndarray):
        return stored_array(value)
    value = value.detach()
    name = str(value.dtype).removeprefix("torch.")
    if name == "bool":
        # Whatever is not 0 is 1.
        value = torch.ne(raw_integers(value), 0)
    shape = tuple(value.shape)
    if name == "float4_e2m1fn_x2":
        shape = (*shape[:-1], shape[-1] * 2)
    return Stored(SAFETENSORS[name], shape, elements_of(value))


def elements_of(tensor):
    """The bytes of the elements, in order."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return raw_integers(tensor).contiguous().numpy().tobytes()


def raw_integers(tensor):
    """The elements of a tensor as integers of as many bytes, by its strides."""
    size = tensor.element_size()
    if size == 16:
        return torch.view_as_real(tensor)
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    viewed = torch.empty(0, dtype=integers)
    return viewed.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def stored_array(array):
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return Stored(SAFETENSORS[array.dtype.name], array.shape, little.tobytes("C"))


def leaves(value, modules=False, name=None):
    """Each tensor or array with its name. One that is all there is is called `tensor`."""
    if isinstance(value, (torch.Tensor, numpy.ndarray)):
        yield "tensor" if name is None else name, value
        return
    if isinstance(value, torch.nn.Module) and modules:
        # All names of a tensor, those that it has twice too.
        items = value.state_dict(keep_vars=True).items()
    elif isinstance(value, Mapping):
        items = value.items()
    elif type(value) in (list, tuple):
        items = enumerate(value)
    else:
        return
    for key, inner in items:
        yield from leaves(inner, modules, str(key) if name is None else f"{name}.{key}")


def has_tensors(value, modules):
    return any(True for _ in leaves(value, modules))


def state_dict(root, modules=False):
    """The state dict of a checkpoint: what one well-known key has, or all of it but the state of training."""
    if not isinstance(root, Mapping):
        return root
    held = [
        root[key]
        for key in HOLDERS
        if isinstance(root.get(key), (Mapping, torch.nn.Module)) and has_tensors(root[key], modules)
    ]
    if len(held) == 1:
        return held[0]
    is_state = lambda key, value: key not in TRAINING or isinstance(value, torch.Tensor)  # noqa: E731
    return {key: value for key, value in root.items() if is_state(key, value)}


def expected(root, every=False, modules=False):
    """Names and tensors of the safetensors file that a checkpoint becomes."""
    start = root if every else state_dict(root, modules)
    return {name: stored(value) for name, value in leaves(start, modules)}


def refused(name):
    """Whether safetensors has no such dtype."""
    return name in REFUSED
