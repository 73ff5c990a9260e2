"""The exceptions of the drop-in, and what `safetensors` says where this package says something else.

A message begins with the words of `safetensors` 0.8, goes on with the name that the same fault had in older versions,
as ``HeaderTooLarge``, and ends with this package's own account. Programs look for any of the three.
"""

from __future__ import annotations

import os
import struct

from weigh._errors import FormatError, SliceError, TensorNotFoundError, WeighError


class SafetensorError(Exception):
    """What is wrong with a file, or with what was asked of it.

    Attributes:
        code: the stable code of what is wrong, as ``"data-truncated"``.
        findings: what was found wrong with the file, a list of `weigh.Finding`.
        help: what to do about it, or ``None``.
    """

    code = "error"
    help = None

    def __init__(self, *args):
        super().__init__(*args)
        self.findings = []


SafetensorError.__module__ = "weigh.safetensors"


class SafetensorOSError(SafetensorError, OSError):
    """What the system reports while a file is written: caught as what `safetensors` raises, and as what it is."""

    def __str__(self):
        # One that has a message of its own has the number and the path in it.
        return self.args[0] if len(self.args) == 1 else OSError.__str__(self)

    def __reduce__(self):
        own = {name: getattr(self, name) for name in ("errno", "strerror", "filename")}
        return type(self), self.args, vars(self) | own


class SafetensorFileNotFoundError(SafetensorOSError, FileNotFoundError):
    """There is no such folder."""


class SafetensorIsADirectoryError(SafetensorOSError, IsADirectoryError):
    """The path is a folder's."""


class SafetensorNotADirectoryError(SafetensorOSError, NotADirectoryError):
    """The path goes through what is no folder."""


class SafetensorPermissionError(SafetensorOSError, PermissionError):
    """The file may not be written."""


class UnreadableFileError(PermissionError, FileNotFoundError):
    """The file may not be read: what it is, and what `safetensors` takes it for."""


_OF_SYSTEM = {
    FileNotFoundError: SafetensorFileNotFoundError,
    IsADirectoryError: SafetensorIsADirectoryError,
    NotADirectoryError: SafetensorNotADirectoryError,
    PermissionError: SafetensorPermissionError,
}

_TOO_SMALL = ("HeaderTooSmall", "header too small")
_TOO_LARGE = ("HeaderTooLarge", "header too large")
_LENGTH = ("InvalidHeaderLength", "invalid header length")
_NOT_UTF8 = ("InvalidHeader", "invalid UTF-8 in header")
_JSON = ("InvalidHeaderDeserialization", "invalid JSON in header")
_OFFSET = ("InvalidOffset", "invalid offset for tensor `{tensor}`")
_INFO = ("TensorInvalidInfo", "invalid shape, data type, or offset for tensor")
_OVERFLOW = ("ValidationOverflow", "overflow computing buffer size from shape and/or element type")
_MISALIGNED = (
    "MisalignedSlice",
    "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, this is invalid.",
)
_INCOMPLETE = ("MetadataIncompleteBuffer", "incomplete metadata, file not fully covered")

#: Our codes: the name of the fault in `safetensors` before 0.6, and its words since. What is in no row is `_JSON`.
TEXTS = {
    "file-too-short": _TOO_SMALL,
    "header-over-limit": _TOO_LARGE,
    "header-past-end": _LENGTH,
    "header-not-utf8": _NOT_UTF8,
    "shape-overflow": _OVERFLOW,
    "size-overflow": _OVERFLOW,
    "size-not-bytes": _MISALIGNED,
    "size-mismatch": _INFO,
    "data-gap": _OFFSET,
    "data-overlap": _OFFSET,
    "data-alias": _OFFSET,
    "offsets-reversed": _OFFSET,
    "empty-off-boundary": _OFFSET,
    "data-truncated": _INCOMPLETE,
    "data-trailing": _INCOMPLETE,
}

#: Numbers of findings that `safetensors` overflows at, as it counts in bits of 64-bit numbers.
_COUNTED = [
    ("size-mismatch", "needed", 8),
    ("size-not-bytes", "elements", 4),
    ("data-truncated", "tensor_bytes", 8),
]

#: The order in which `safetensors` looks. It names the first fault; all are in `SafetensorError.findings`.
_ORDER = [_TOO_SMALL, _TOO_LARGE, _LENGTH, _NOT_UTF8, _JSON]
_LAST = [_INCOMPLETE]

_DTYPES = (
    "BOOL F4 F6_E2M3 F6_E3M2 U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ I16 U16 F16 BF16 I32 U32 F32 C64 "
    "F64 I64 U64"
).split()

#: What follows "invalid JSON in header", where it does not depend on how the header was read.
_WITHIN = {
    "header-empty": lambda finding: "EOF while parsing a value",
    "header-trailing-data": lambda finding: "trailing characters",
    "header-padding": lambda finding: "trailing characters",
    "header-bom": lambda finding: "expected value",
    "json-depth": lambda finding: "recursion limit exceeded",
    "entry-field-missing": lambda finding: f"missing field `{_shown(finding.evidence.get('field', ''))}`",
    "dtype-unknown": lambda finding: "unknown variant `{}`, expected one of {}".format(
        _shown(finding.evidence.get("dtype", "")), ", ".join(f"`{name}`" for name in _DTYPES)
    ),
}


def made(message, code, *, help=None, findings=()):  # noqa: A002
    """A `SafetensorError`."""
    error = SafetensorError(message)
    error.code = code
    error.help = help
    error.findings = list(findings)
    return error


def refused(error, stage, head, length):
    """What `safetensors` would raise where a file is refused.

    Args:
        error: the `weigh.FormatError`.
        stage: what the message begins with.
        head: the first 8 bytes of the file, or fewer.
        length: the length of the file in bytes.
    """
    faults = [finding for finding in error.findings if finding.severity == "error"]
    fault = min(faults, key=lambda finding: _rank(_row(finding, head, length)), default=None)
    if fault is not None and fault.code in ("size-overflow", "shape-overflow", "size-not-bytes"):
        # Of one tensor, its offsets are looked at first.
        of_it = (other for other in faults if other.code == "offsets-reversed" and other.tensor == fault.tensor)
        fault = next(of_it, fault)
    name, text = _JSON if fault is None else _row(fault, head, length)
    if fault is not None:
        text = text.replace("{tensor}", _shown(fault.tensor or ""))
        within = _WITHIN.get(fault.code) if name == _JSON[0] else None
        if within is not None:
            text = f"{text}: {within(fault)}"
    account = str(error)
    if error.help and error.help not in account:
        account = f"{account}\nhelp: {error.help}"
    return made(f"{stage}: {text} ({name}): {account}", error.code, help=error.help, findings=error.findings)


def _shown(text):
    """Text from a file, which may not steer a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _row(finding, head, length):
    if finding.code == "not-safetensors":
        return _frame(head, length) or _JSON
    if finding.code == "header-bom":
        return _JSON if "UTF-8" in finding.message else _NOT_UTF8
    for code, number, bits in _COUNTED:
        if finding.code == code and finding.evidence.get(number, 0) * bits >= 2**64:
            return _OVERFLOW
    return TEXTS.get(finding.code, _JSON)


def _frame(head, length):
    """What is wrong with the frame of a file that is something else altogether."""
    if len(head) < 8:
        return _TOO_SMALL
    (header,) = struct.unpack("<Q", head[:8])
    if header > 100_000_000:
        return _TOO_LARGE
    return _LENGTH if 8 + header > length else None


def _rank(row):
    if row in _ORDER:
        return _ORDER.index(row)
    return len(_ORDER) + (row in _LAST)


def translated(error):
    """An exception of this package as `safetensors` would raise it; any other as it is."""
    if isinstance(error, TensorNotFoundError):
        return made(f"File does not contain tensor {error}", error.code, help=error.help)
    if isinstance(error, SliceError):
        return made(f"Error during slicing: {error}", error.code, help=error.help)
    if isinstance(error, FormatError):
        return refused(error, "Error while deserializing header", b"\0" * 8, 8)
    if isinstance(error, WeighError):
        return made(str(error), error.code, help=error.help, findings=error.findings)
    return error


def not_opened(error, path):
    """The failure to open a file: of its true kind, and of that of `safetensors`, to which no path that cannot be
    followed leads to a file.
    """
    if isinstance(error, PermissionError):
        return UnreadableFileError(error.errno, error.strerror, path)
    if not isinstance(error, FileNotFoundError) and os.path.exists(path):
        return error
    # With a file name, Python would write the message itself.
    own = FileNotFoundError(f"No such file or directory: {path}")
    own.errno = error.errno
    return own


def not_written(error):
    """What `safetensors` raises where a file cannot be written."""
    if isinstance(error, UnicodeEncodeError):
        return error
    if isinstance(error, OSError):
        kind = _OF_SYSTEM.get(type(error), SafetensorOSError)
        said = os.strerror(error.errno) if error.errno else str(error)
        own = kind(f'Error while serializing: I/O error: {said} (os error {error.errno}) at path "{error.filename}"')
        own.errno, own.strerror, own.filename = error.errno, said, error.filename
        own.code = "io"
        return own
    if isinstance(error, WeighError):
        return made(f"Error while serializing: {error}", error.code, help=error.help, findings=error.findings)
    return made(f"Error while serializing: {error}", "error")


def misfit(fault, account):
    """The words for a tensor that cannot be written, from one of the rows above."""
    name, text = {"size": _INFO, "overflow": _OVERFLOW}[fault]
    code = {"size": "size-mismatch", "overflow": "size-overflow"}[fault]
    return made(f"Error while serializing: {text} ({name}): {account}", code)
