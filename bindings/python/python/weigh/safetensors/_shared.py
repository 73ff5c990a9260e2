"""Which of torch's tensors share memory, and which of them stand for the others in a file."""

from __future__ import annotations

from collections import defaultdict

from weigh._frameworks import _torch

#: Bytes of an element of each of torch's types that the format has.
SIZE = {dtype: dtype.itemsize for dtype in _torch.DTYPES.values()}


def storage_ptr(tensor):
    """The address of the memory that a tensor is in; 0 if it is in none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def storage_size(tensor):
    """Bytes of the memory that a tensor is in."""
    try:
        return tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):
        return tensor.nelement() * SIZE[tensor.dtype]


def end_ptr(tensor):
    """The address after a tensor's last element."""
    start = tensor.data_ptr()
    if not tensor.nelement():
        return start
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start + (last + 1) * tensor.element_size()


def find_shared_tensors(state_dict):
    """Sets of names: those in one overlap in memory, each with the next. A tensor by itself is a set of one."""
    in_storage = defaultdict(set)
    for name, tensor in state_dict.items():
        if tensor.device.type == "meta":
            continue
        address, size = storage_ptr(tensor), storage_size(tensor)
        if address and size:
            in_storage[tensor.device, address, size].add(name)
    return filter_shared_not_shared(list(in_storage.values()), state_dict)


def filter_shared_not_shared(tensors, state_dict):
    """Sets of names that are in one memory, taken apart into those that overlap."""
    found = []
    for names in tensors:
        if len(names) < 2:
            found.append(names)
            continue
        spans = sorted((state_dict[name].data_ptr(), end_ptr(state_dict[name]), name) for name in names)
        previous_end = None
        for start, end, name in spans:
            if previous_end is None or start >= previous_end:
                found.append({name})
            else:
                found[-1].add(name)
            # Only the one before: files that were written by this rule are read by it.
            previous_end = end
    return found


def is_complete(tensor):
    """Whether a tensor is all of the memory that it is in."""
    at_start = tensor.data_ptr() == storage_ptr(tensor)
    return at_start and tensor.nelement() * SIZE[tensor.dtype] == storage_size(tensor)


def remove_duplicate_names(state_dict, *, preferred_names=None, discard_names=None):
    """Which names to leave out of a file: lists of them, by the name that stands for them.

    Args:
        preferred_names: those to keep rather than others.
        discard_names: those to keep only if there is no other.

    Raises:
        RuntimeError: of tensors that overlap, none is all of their memory.
    """
    preferred_names, discard_names = set(preferred_names or ()), set(discard_names or ())
    left_out = defaultdict(list)
    for names in find_shared_tensors(state_dict):
        complete = {name for name in names if is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep"
                f" for saving amongst: {names}. None is covering the entire storage.Refusing to save/load the model"
                " since you could be storing much more memory than needed: clone the tensors to have each by itself."
            )
        kept = min(preferred_names & complete or complete - discard_names or complete)
        others = sorted(names - {kept})
        if others:
            left_out[kept] = others
    return left_out
