"""Writes small_values.txt: what ml_dtypes makes of every code of the small float dtypes.

Needs the packages ml_dtypes and numpy. A line holds a dtype, by its name in the format, and the
F32 of each of its codes in order, in hexadecimal bits; a NaN is only called that.
"""

import pathlib

import ml_dtypes
import numpy

DTYPES = {
    "F4": ml_dtypes.float4_e2m1fn,
    "F6_E2M3": ml_dtypes.float6_e2m3fn,
    "F6_E3M2": ml_dtypes.float6_e3m2fn,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}


def line(name: str) -> str:
    bits = {"F4": 4, "F6": 6, "F8": 8}[name[:2]]
    codes = numpy.arange(1 << bits, dtype=numpy.uint8)
    with numpy.errstate(invalid="ignore"):
        values = codes.view(DTYPES[name]).astype(numpy.float32)
    texts = (
        "nan" if numpy.isnan(value) else f"{value.view(numpy.uint32):08x}"
        for value in values
    )
    return " ".join([name, *texts])


def main() -> None:
    versions = f"# ml_dtypes {ml_dtypes.__version__}, written by small_values.py"
    path = pathlib.Path(__file__).with_suffix(".txt")
    path.write_text("\n".join([versions, *map(line, DTYPES)]) + "\n")


if __name__ == "__main__":
    main()
