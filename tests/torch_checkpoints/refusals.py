"""Honest files that become no safetensors file as they are, each with the stable word that says why."""

import collections

import numpy
import torch

import elements
from structures import counting


def cyclic():
    root = {"w": counting(1)}
    root["self"] = root
    return root


def laughing():
    """40 lists, and 2 to the 40 names of one tensor."""
    inner = [counting(1)]
    for _ in range(40):
        inner = [inner, inner]
    return {"a": inner}


def coo(dtype=torch.float32):
    return torch.eye(3, dtype=dtype).to_sparse()


def per_tensor(dtype):
    return torch.quantize_per_tensor(counting(2, 3), 0.5, 1, dtype)


def per_channel(dtype):
    return torch.quantize_per_channel(counting(2, 4), torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, dtype)


def packed(dtype):
    scales, zero_points = torch.tensor([0.5, 0.25]), torch.tensor([0.0, 1.0])
    return torch.quantize_per_channel(counting(2, 4), scales, zero_points, 0, dtype)


QUANTIZED = {
    "qint8": lambda: per_tensor(torch.qint8),
    "quint8": lambda: per_tensor(torch.quint8),
    "qint32": lambda: per_tensor(torch.qint32),
    "channels_qint8": lambda: per_channel(torch.qint8),
    "channels_quint8": lambda: per_channel(torch.quint8),
    "channels_of_the_last_dimension": lambda: torch.quantize_per_channel(
        counting(2, 3), torch.tensor([0.5, 0.25, 2.0], dtype=torch.float64), torch.tensor([0, 1, -3]), 1, torch.qint8
    ),
    "transposed_qint8": lambda: per_tensor(torch.qint8).t(),
    "part_of_quint8": lambda: per_tensor(torch.quint8)[1:, ::2],
}

# Several integers in a byte.
PACKED = {
    "quint4x2": lambda: packed(torch.quint4x2),
    "quint2x4": lambda: packed(torch.quint2x4),
}

# Tensors: the word is why that tensor is refused.
TENSORS = {
    **{name: (lambda name=name: elements.any_bits(name), code) for name, code in elements.REFUSED.items()},
    **{name: (make, "quantized") for name, make in (QUANTIZED | PACKED).items()},
    "sparse_coo": (coo, "sparse"),
    "sparse_coo_of_integers": (lambda: coo(torch.int64), "sparse"),
    "sparse_csr": (lambda: torch.eye(3).to_sparse_csr(), "sparse"),
    "sparse_csc": (lambda: torch.eye(3).to_sparse_csc(), "sparse"),
    "sparse_bsr": (lambda: torch.eye(4).to_sparse_bsr((2, 2)), "sparse"),
    "sparse_bsc": (lambda: torch.eye(4).to_sparse_bsc((2, 2)), "sparse"),
    "meta": (lambda: torch.empty(3, device="meta"), "meta"),
    "meta_parameter": (lambda: torch.nn.Parameter(torch.empty(3, device="meta")), "meta"),
    "meta_of_bytes": (lambda: torch.empty(3, device="meta", dtype=torch.uint16), "meta"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
    "float4_scalar": (lambda: elements.any_bits("float4_e2m1fn_x2")[0], "packed-scalar"),
    "numpy_complex128": (lambda: numpy.arange(2) + 1j, "complex"),
    "numpy_fields": (lambda: numpy.zeros(2, dtype=[("a", "f4"), ("b", "i8")]), "numpy-dtype"),
    "numpy_long_double": (lambda: numpy.zeros(2, dtype=numpy.longdouble), "numpy-dtype"),
}

# Arrays that are no tensors: the word is why they are refused where all tensors are wanted.
NO_NUMBERS = {
    "numpy_text": (lambda: numpy.array(["a", "bc"]), "numpy-dtype"),
    "numpy_bytes": (lambda: numpy.array([b"a", b"bc"]), "numpy-dtype"),
    "numpy_objects": (lambda: numpy.array([{}, None], dtype=object), "numpy-objects"),
    "numpy_dates": (lambda: numpy.array(["2020-01-01"], dtype="datetime64[D]"), "numpy-dtype"),
}

# Whole checkpoints.
NAMES = {
    "two_of_one_name": (lambda: {"a": {"b": counting(1)}, "a.b": counting(2)}, "state-name-twice"),
    "a_place_and_a_key": (lambda: {"a": [counting(1)], "a.0": counting(2)}, "state-name-twice"),
    "an_integer_and_its_text": (lambda: {0: counting(1), "0": counting(2)}, "state-name-twice"),
    "reserved": (lambda: {"__metadata__": counting(1)}, "state-name-reserved"),
    "float_key": (lambda: {0.5: counting(1)}, "state-key"),
    "boolean_key": (lambda: {True: counting(1)}, "state-key"),
    "none_key": (lambda: {None: counting(1)}, "state-key"),
    "tuple_key": (lambda: {"a": {(1, 2): counting(1)}}, "state-key"),
    "bytes_key": (lambda: {b"\xff": counting(1)}, "state-key"),
    "surrogate_key": (lambda: {"\ud800": counting(1)}, "state-key"),
    "large_integer_key": (lambda: {2**70: counting(1)}, "state-key"),
    "tensor_key": (lambda: {counting(1): counting(1)}, "state-key"),
    "set_of_tensors": (lambda: {"a": {counting(1)}}, "state-opaque"),
    "cyclic": (cyclic, "graph-cycle"),
    "laughing": (laughing, "graph-expansion"),
    "expanded_without_end": (lambda: {"a": counting(1).expand(2**31 - 1, 2**20)}, "limit-expansion"),
    "many_expanded": (lambda: {str(place): counting(1).expand(2**26) for place in range(64)}, "limit-expansion"),
}

Pair = collections.namedtuple("Pair", "first second")


class Own:
    """A class of a program's own."""

    def __init__(self):
        self.weight = counting(2)


# What unpickling calls is in none of the tables.
CALLS = {
    "named_tuple": lambda: {"a": Pair(counting(1), counting(2))},
    "own_class": lambda: {"w": counting(1), "own": Own()},
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 1), torch.ones(3, 1)], layout=torch.jagged),
    "partial": lambda: {"w": counting(1), "f": __import__("functools").partial(print, 1)},
}

# What it only names.
GLOBALS = {
    "function": lambda: {"w": counting(1), "activation": torch.nn.functional.relu},
    "class": lambda: {"w": counting(1), "class": Own},
}
