"""``safetensors.torch``: files of torch tensors."""

from __future__ import annotations

import torch

from weigh._frameworks import _torch
from weigh.safetensors._errors import SafetensorError
from weigh.safetensors._open import converter, safe_open
from weigh.safetensors._serialize import TensorSpec, deserialize, loaded, not_contiguous, serialize, serialize_file
from weigh.safetensors._shared import SIZE as _SIZE
from weigh.safetensors._shared import end_ptr as _end_ptr
from weigh.safetensors._shared import filter_shared_not_shared as _filter_shared_not_shared
from weigh.safetensors._shared import find_shared_tensors as _find_shared_tensors
from weigh.safetensors._shared import is_complete as _is_complete
from weigh.safetensors._shared import remove_duplicate_names as _remove_duplicate_names
from weigh.safetensors._shared import storage_ptr, storage_size

__all__ = [
    "SafetensorError",
    "TensorSpec",
    "deserialize",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
    "serialize",
    "serialize_file",
    "storage_ptr",
    "storage_size",
    "_SIZE",
    "_TYPES",
    "_end_ptr",
    "_filter_shared_not_shared",
    "_find_shared_tensors",
    "_is_complete",
    "_remove_duplicate_names",
]

#: torch's types, by their names in the format.
_TYPES = dict(_torch.DTYPES)

_float8_e4m3fn = getattr(torch, "float8_e4m3fn", None)
_float8_e4m3fnuz = getattr(torch, "float8_e4m3fnuz", None)
_float8_e5m2 = getattr(torch, "float8_e5m2", None)
_float8_e5m2fnuz = getattr(torch, "float8_e5m2fnuz", None)
_float8_e8m0 = getattr(torch, "float8_e8m0fnu", None)
_float4_e2m1_x2 = getattr(torch, "float4_e2m1fn_x2", None)


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Writes a module's tensors, each memory once: tied ones are named in the metadata.

    Args:
        model: a ``torch.nn.Module``.
        filename: the path.
        metadata: a ``dict`` of strings, which is not changed.
        force_contiguous: whether tensors that do not lie in order are written as copies that do.

    Raises:
        RuntimeError: tensors overlap, and none is all of their memory.
        ValueError: a tensor is sparse, or does not lie in order and is not to be copied.
    """
    tensors = model.state_dict()
    for kept, names in _remove_duplicate_names(tensors).items():
        metadata = {} if metadata is None else dict(metadata)
        for name in names:
            metadata.setdefault(name, kept)
            del tensors[name]
    if force_contiguous:
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    try:
        save_file(tensors, filename, metadata=metadata)
    except ValueError as error:
        hint = "Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        raise ValueError(f"{error} {hint}") from None


def load_model(model, filename, strict=True, device="cpu", *, backend="mmap"):
    """Reads a module's tensors from a file that `save_model` wrote.

    Args:
        model: a ``torch.nn.Module``.
        filename: the path.
        strict: whether names that only one of the two has are an error.
        device: where the tensors are read to.
        backend: as for `safe_open`.

    Returns:
        The names that the file lacks, a ``set``, and those that the module lacks, a ``list``.

    Raises:
        RuntimeError: a shape is another, or ``strict`` is true and a name is missing or unexpected.
    """
    tensors = load_file(filename, device=device, backend=backend)
    tied = _remove_duplicate_names(model.state_dict(), preferred_names=tensors.keys())
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing = set(missing)
    for name in (name for names in tied.values() for name in names):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        message = f"Error(s) in loading state_dict for {model.__class__.__name__}:"
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                message += f"\n    {what} key(s) in state_dict: {listed}"
        raise RuntimeError(message)
    return missing, unexpected


def save(tensors, metadata=None):
    """A file's content, as ``bytes``.

    Args:
        tensors: a ``dict`` of names and tensors that lie in order and share no memory.
        metadata: a ``dict`` of strings.

    Raises:
        ValueError: a tensor is sparse, does not lie in order, or is none.
        RuntimeError: tensors share memory.
        SafetensorError: a name cannot be used.
    """
    kept = []
    return serialize(_flatten_as_ptr(tensors, kept), metadata=metadata)


def save_file(tensors, filename, metadata=None):
    """Writes a file. Arguments and errors are those of `save`, and ``filename``, the path."""
    kept = []
    serialize_file(_flatten_as_ptr(tensors, kept), filename, metadata=metadata)


def load_file(filename, device="cpu", *, backend="mmap"):
    """The tensors of a file, by name. Arguments and errors are those of `safe_open`."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def load(data):
    """The tensors of a file's content, ``bytes``, by name. They have memory of their own."""
    return loaded(data, converter("pytorch"))


def _getdtype(dtype_str):
    return _TYPES[dtype_str]


def _view2torch(safeview):
    """Tensors of what `deserialize` gives."""
    result = {}
    for name, entry in safeview:
        dtype, shape = _getdtype(entry["dtype"]), list(entry["shape"])
        if entry["dtype"] == "F4" and shape:
            shape[-1] //= 2
        data = entry["data"]
        raw = torch.frombuffer(data, dtype=torch.uint8) if len(data) else torch.empty(0, dtype=torch.uint8)
        result[name] = raw.view(dtype).reshape(shape)
    return result


def _to_ndarray(tensor):
    """The bytes of a tensor as an array of numpy, and the tensor that keeps them."""
    import numpy as np

    size = tensor.nelement() * _SIZE[tensor.dtype]
    if not size:
        return np.empty(0, np.uint8), tensor
    tensor = _in_order(tensor)
    return tensor.view(torch.uint8).reshape(-1).numpy(), tensor


def _in_order(tensor):
    """The tensor on the CPU, with its elements as they are meant: conjugated and negated ones are computed."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.to("cpu")


def _evaluate_tensors_for_save(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    sparse = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout != torch.strided:
            sparse.append(name)
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support."
            " You can make it a dense tensor before saving with `.to_dense()` but be aware this might"
            " make a much larger file than needed."
        )
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when"
            f" loading them again: {shared}. A potential way to correctly save your model is to use `save_model`."
        )


def _flatten_as_ptr(tensors, keep_alive_buffer):
    """What `serialize` takes of tensors. ``keep_alive_buffer`` gets what has to stay until then."""
    _evaluate_tensors_for_save(tensors)
    flattened = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise not_contiguous(name)
        size = tensor.nelement() * _SIZE[tensor.dtype]
        tensor = _in_order(tensor)
        keep_alive_buffer.append(tensor)
        dtype = str(tensor.dtype).rpartition(".")[2]
        flattened[name] = TensorSpec(dtype=dtype, shape=tensor.shape, data_ptr=tensor.data_ptr(), data_len=size)
    return flattened


def _tobytes(tensor, name):
    """A tensor's bytes, as older versions had it."""
    kept = []
    _flatten_as_ptr({name: tensor}, kept)
    return bytes(_to_ndarray(kept[0])[0])


def _flatten(tensors):
    """Bytes of tensors, as older versions had it."""
    _evaluate_tensors_for_save(tensors)
    return {
        name: {"dtype": str(tensor.dtype).rpartition(".")[2], "shape": tensor.shape, "data": _tobytes(tensor, name)}
        for name, tensor in tensors.items()
    }
