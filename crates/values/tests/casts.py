"""Writes casts.txt: what ml_dtypes and numpy make of some elements of every dtype in every other.

Needs the packages ml_dtypes and numpy. A line holds the dtypes of the source and of the target, by
their names in the format, then elements: the bits of the source, a colon and those of the target,
in hexadecimal, or "nan" if they are one. Where Weigh is meant to make something else, that follows
after "=", and `meant` below says why.
"""

import fractions
import math
import pathlib
import warnings

import ml_dtypes
import numpy

DTYPES = {
    "BOOL": numpy.bool_,
    "F4": ml_dtypes.float4_e2m1fn,
    "F6_E2M3": ml_dtypes.float6_e2m3fn,
    "F6_E3M2": ml_dtypes.float6_e3m2fn,
    "U8": numpy.uint8,
    "I8": numpy.int8,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "I16": numpy.int16,
    "U16": numpy.uint16,
    "F16": numpy.float16,
    "BF16": ml_dtypes.bfloat16,
    "I32": numpy.int32,
    "U32": numpy.uint32,
    "F32": numpy.float32,
    "C64": numpy.complex64,
    "F64": numpy.float64,
    "I64": numpy.int64,
    "U64": numpy.uint64,
}
BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
INTEGERS = {"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"}
WITHOUT_NAN = INTEGERS | {"F4", "F6_E2M3", "F6_E3M2"}

NUMBERS = [
    0.0, 1.0, 1.5, 2.5, 3.0, 0.3, 7.0, 100.7, 247.0, 248.0, 464.0, 465.0, 61440.0, 65520.0,
    1.0625 + 2**-40, 1.125 + 2**-40, 1.25 + 2**-40, 2.0**-10, 2.0**-24, 2.0**-25, 2.0**-127,
    2.0**-133, 1e-40, 1e-300, 3e38, math.inf, math.nan,
]  # fmt: skip
WHOLE = [
    0, 1, 2, 3, 5, 7, 17, 100, 127, 128, 255, 256, 465, 32768, 65520, 2**24 + 1, 2**31, 2**53 + 1,
]  # fmt: skip


def elements(name: str) -> numpy.ndarray:
    """Elements of a dtype: all of the narrowest, else both signs of those above."""
    dtype = DTYPES[name]
    if name in BITS:
        return numpy.arange(1 << BITS[name], dtype=numpy.uint8).view(dtype)
    if name == "BOOL":
        return numpy.array([False, True])
    if name in INTEGERS:
        limits = numpy.iinfo(dtype)
        ends = [limits.min, limits.max]
        whole = sorted({*ends, *WHOLE, *(-number for number in WHOLE)})
        return numpy.array([it for it in whole if ends[0] <= it <= ends[1]], dtype=dtype)
    numbers = numpy.array(NUMBERS + [-number for number in NUMBERS])
    if name == "C64":
        numbers = numbers + 1j * (numpy.arange(len(numbers)) % 3)
    return numpy.unique(numbers.astype(dtype).view(bits_of(name))).view(dtype)


def bits_of(name: str) -> type:
    size = numpy.dtype(DTYPES[name]).itemsize
    return {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}[size]


def is_nan(value) -> bool:
    return bool(value != value)


def cast(values: numpy.ndarray, target: str) -> numpy.ndarray:
    try:
        return values.astype(DTYPES[target])
    except TypeError:
        # Some pairs of small dtypes are missing; F32 has all that these have.
        return values.astype(numpy.float32).astype(DTYPES[target])


def meant(source: str, target: str, value) -> int | None:
    """What a cast makes of a value, if that is not meant to be the same."""
    if source in INTEGERS or source == "BOOL":
        return None
    number = value.real
    if target in WITHOUT_NAN and is_nan(number):
        # There is no NaN: it is 0, whatever its sign.
        return 0
    if target in INTEGERS:
        # Rounded to the nearest, not cut off, and then clamped, which C leaves undefined.
        limits = numpy.iinfo(DTYPES[target])
        whole = float(number)
        if not math.isinf(whole):
            whole = round(whole)
        nearest = min(max(whole, limits.min), limits.max)
        return int(nearest) & ((1 << limits.bits) - 1)
    is_small = target in BITS or target.startswith("F8")
    if source == "F64" and is_small and math.isfinite(number):
        # Rounded once, not to F32 first.
        return nearest_code(target, float(number))
    return None


def nearest_code(target: str, number: float) -> int | None:
    """The code of the value nearest to a number, unless that is 0, or two are, or it is beyond."""
    exact = fractions.Fraction(number)
    codes = numpy.arange(1 << BITS.get(target, 8), dtype=numpy.uint8)
    values = codes.view(DTYPES[target]).astype(numpy.float64)
    finite = [(code, float(value)) for code, value in enumerate(values) if math.isfinite(value)]
    is_positive = target == "F8_E8M0"
    if abs(number) > max(value for _, value in finite) or is_positive and number <= 0:
        return None
    distances = sorted((abs(fractions.Fraction(value) - exact), code) for code, value in finite)
    (first, code), (second, _) = distances[:2]
    return code if first < second and values[code] != 0 else None


def line(source: str, target: str) -> str:
    texts = [source, target]
    values = elements(source)
    got = cast(values, target)
    for value, before, after, bits in zip(
        values, values.view(bits_of(source)), got, got.view(bits_of(target)), strict=True
    ):
        theirs = "nan" if target != "BOOL" and is_nan(after) else f"{bits:x}"
        want = meant(source, target, value)
        other = "" if want is None or f"{want:x}" == theirs else f"={want:x}"
        texts.append(f"{before:x}:{theirs}{other}")
    return " ".join(texts)


def main() -> None:
    versions = f"ml_dtypes {ml_dtypes.__version__}, numpy {numpy.__version__}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line(source, target) for source in DTYPES for target in DTYPES]
    path = pathlib.Path(__file__).with_suffix(".txt")
    path.write_text("\n".join([f"# {versions}, written by casts.py", *lines]) + "\n")


if __name__ == "__main__":
    main()
