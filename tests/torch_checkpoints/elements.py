"""Tensors of every dtype that torch saves, and every kind of view of them."""

import numpy
import torch

# What safetensors calls the dtypes that it has.
SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn_x2": "F4",
}

PLAIN = list(SAFETENSORS)

# Those that it has not, with the code that names why.
REFUSED = {
    "complex128": "complex",
    "complex32": "complex",
    "bcomplex32": "complex",
    "bits8": "bits",
    "bits16": "bits",
    "bits1x8": "bits",
    "bits2x4": "bits",
    "bits4x2": "bits",
}

# What torch.save writes as bytes without a dtype of their own. No version of torch reads those in a legacy file
# ("type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"), although it writes them.
UNTYPED = {
    "uint16", "uint32", "uint64", "complex32", "bcomplex32",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
    "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2",
}  # fmt: skip

ROWS, COLUMNS = 4, 6


def dtype_of(name):
    return getattr(torch, name)


def element_bytes(name):
    return torch.empty(0, dtype=dtype_of(name)).element_size()


def number_bytes(name):
    """Bytes that change their order together with the byte order: a complex number is two numbers."""
    return element_bytes(name) // (2 if dtype_of(name).is_complex else 1)


def any_bits(name, count=ROWS * COLUMNS):
    """Elements of any bits: not a number, denormal, the least integer. Booleans are 0 or 1."""
    random = numpy.random.default_rng(len(name))
    raw = random.integers(0, 256, count * element_bytes(name), dtype=numpy.uint8)
    if name == "bool":
        raw &= 1
    return reinterpreted(torch.from_numpy(raw), name)


def reinterpreted(raw, name):
    """Bytes as elements of a dtype, without a look at them."""
    if name.startswith("bits"):
        # Tensor.view asks these for limits, which they have not.
        return torch.empty(0, dtype=dtype_of(name)).set_(raw.untyped_storage(), 0, (raw.numel() // element_bytes(name),))
    return raw.view(dtype_of(name))


def numbers(name, count=ROWS * COLUMNS):
    """Numbers that every floating dtype has, 0 and -0 among them. Complex ones have none of these: torch makes 0 or -0
    of a negated 0 as it comes, by the place and the length of the tensor."""
    values = torch.arange(count, dtype=torch.float64) - 5
    values[0] = -0.0
    if dtype_of(name).is_complex:
        values = torch.complex(values + 0.5, values.flip(0) * 2 + 1)
    return values.to(dtype_of(name))


# Views of a matrix of 4 × 6 that share its storage, whatever its elements are.
VIEWS = {
    "whole": lambda matrix: matrix,
    "transposed": lambda matrix: matrix.t(),
    "expanded": lambda matrix: matrix[:1].expand(3, COLUMNS),
    "expanded_scalar": lambda matrix: matrix[2, 3].expand(2, 2),
    "sliced": lambda matrix: matrix[1:3, ::2],
    "column": lambda matrix: matrix[:, 4],
    "rows": lambda matrix: matrix[2:],
    "narrow": lambda matrix: matrix.narrow(1, 2, 3),
    "diagonal": lambda matrix: matrix.diagonal(),
    "overlapping": lambda matrix: matrix.as_strided((2, 3), (1, 1), 3),
    "reshaped": lambda matrix: matrix.view(2, 2, 6),
    "permuted": lambda matrix: matrix.view(2, 2, 6).permute(2, 0, 1),
    "squares": lambda matrix: matrix.view(2, 2, 3, 2).transpose(1, 2),
    "one_by_one": lambda matrix: matrix[3:, 5:],
    "last": lambda matrix: matrix[3, 5],
    "empty_rows": lambda matrix: matrix[:0],
    "empty_past_the_end": lambda matrix: matrix.as_strided((0, 7), (9, 1), 24),
    "odd_strides_of_one": lambda matrix: matrix.as_strided((1, 6), (5, 1), 6),
}

NEGATABLE = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "complex64"]


def views(name):
    """Views of one storage by what they are, and some tensors of their own."""
    matrix = any_bits(name).view(ROWS, COLUMNS)
    tensors = {what: view(matrix) for what, view in VIEWS.items()}
    tensors["alone"] = any_bits(name, 5)
    tensors["empty"] = torch.empty(0, dtype=dtype_of(name))
    tensors["empty_of_dimensions"] = torch.empty((2, 0, 3), dtype=dtype_of(name))
    tensors["scalar"] = any_bits(name, 1)[0]
    tensors["of_ones"] = any_bits(name, 1).view(1, 1, 1)
    tensors["part_of_more"] = any_bits(name, 100)[90:]
    tensors["large"] = any_bits(name, 40_000).view(200, 200).t()
    if name == "float4_e2m1fn_x2":
        # Two elements in each, and the last dimension is doubled: there must be one.
        tensors = {what: tensor for what, tensor in tensors.items() if tensor.dim()}
    return tensors


def lazy(name):
    """Tensors whose negation or conjugation is still to be done."""
    matrix = numbers(name).view(ROWS, COLUMNS)
    tensors = {}
    if name in NEGATABLE or name == "complex128":
        tensors["negated"] = torch._neg_view(matrix)
        tensors["negated_transposed"] = torch._neg_view(matrix.t())
        tensors["negated_part"] = torch._neg_view(matrix[1:, 2:4])
        tensors["negated_expanded"] = torch._neg_view(matrix[:1]).expand(3, COLUMNS)
        tensors["not_negated"] = matrix
    if dtype_of(name).is_complex and name != "bcomplex32":
        tensors["conjugated"] = matrix.conj()
        tensors["conjugated_transposed"] = matrix.mH
        tensors["conjugated_part"] = matrix.conj()[::2, 1]
    if dtype_of(name).is_complex and name not in ("bcomplex32", "complex32"):
        tensors["both"] = torch._neg_view(matrix.conj())
    return tensors


def parts_of(name):
    """The imaginary parts of conjugated numbers: numbers that are not complex, of every other place of a storage, with
    a negation still to be done."""
    matrix = numbers(name).view(ROWS, COLUMNS)
    return {"imaginary": matrix.conj().imag, "transposed": matrix.mH.imag, "real": matrix.conj().real}
