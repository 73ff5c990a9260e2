"""Files, opened for a framework and a device."""

from __future__ import annotations

import errno
import functools
import os

from weigh import _frameworks
from weigh._errors import FormatError, WeighError
from weigh._weigh import SafeOpen
from weigh.safetensors._errors import made, not_opened, refused, translated
from weigh.safetensors._serialize import path_of

_FRAMEWORKS = {
    "pt": "pytorch",
    "torch": "pytorch",
    "pytorch": "pytorch",
    "np": "numpy",
    "numpy": "numpy",
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "jax": "flax",
    "flax": "flax",
    "mlx": "mlx",
    "paddle": "paddle",
}

_MODULES = {"pytorch": "torch", "flax": "jax"}

#: What is imported when a file is opened: for all others numpy, and they with the first tensor.
_AT_ONCE = {"pytorch": "torch", "paddle": "paddle"}

#: Types that jax has or has not, by what it was built with.
_PACKED = ("F4", "F6_E2M3", "F6_E3M2")

#: Dtypes that a framework narrows, to 32 bits, where `weigh.open` would refuse what does not fit.
_NARROWED = {"mlx": ("F64",), "flax": ("I64", "U64")}

#: Devices that may have a number.
_NUMBERED = ("cuda", "musa", "npu", "xpu", "xla", "mlu", "hpu")


@functools.cache
def converter(framework):
    """What makes tensors of a framework from a `weigh.Buffer` and a device. Its errors are the drop-in's.

    The framework is imported with the first tensor.
    """
    own = None

    def convert(buffer, device):
        nonlocal own
        if own is None:
            own = _maker(framework)
        try:
            return own(buffer, device)
        except ImportError as error:
            if framework == "numpy":
                raise TypeError(f"data type of {buffer.dtype} not understood: {error}") from error
            raise
        except (TypeError, ValueError) as error:
            if isinstance(error, ValueError) and buffer.dtype not in _PACKED:
                # There are more dimensions than the framework has.
                raise
            raise _unmade(buffer, error) from error
        except RuntimeError as error:
            if framework == "flax" and buffer.dtype in _PACKED:
                raise _unmade(buffer, error) from error
            raise

    return convert


def _maker(framework):
    own = _frameworks.converter(_MODULES.get(framework, framework))
    narrowed = _NARROWED.get(framework)
    if narrowed is None:
        return own
    return lambda buffer, device: (_as_of_numpy(framework, buffer) if buffer.dtype in narrowed else own(buffer, device))


def _as_of_numpy(framework, buffer):
    """What a framework makes of an array of numpy: of types that it has not, narrower ones."""
    array = _frameworks.converter("numpy")(buffer)
    if framework == "mlx":
        import mlx.core as mx

        return mx.array(array)
    import jax.numpy as jnp

    return jnp.asarray(array)


def _unmade(buffer, error):
    if buffer.dtype == "F4" and buffer.shape and buffer.shape[-1] % 2:
        shape = list(buffer.shape)
        return made(
            f"f4_x2 dtype requires that the last dim be divisible by 2 in torch: got {shape}: {error}", "dtype"
        )
    return made(f"Dtype not understood: {buffer.dtype}: {error}", "dtype")


def framework_of(framework):
    """A framework by what it is called."""
    if not isinstance(framework, str):
        raise TypeError(f"argument 'framework': '{type(framework).__name__}' object is not an instance of 'str'")
    known = _FRAMEWORKS.get(framework)
    if known is None:
        # What cannot be encoded is an error of its own.
        framework.encode()
        raise made(f"framework {framework} is invalid", "framework")
    return known


def device_of(device):
    """A device: its name, with its number, or a number alone, which torch understands."""
    if device is None:
        return "cpu"
    if isinstance(device, int):
        if device < 0:
            raise made(f"device {device!r} is invalid", "device")
        return int(device)
    if not isinstance(device, str):
        raise made(f"device {device!r} is invalid", "device")
    if device in ("cpu", "mps"):
        return device
    kind, colon, number = device.partition(":")
    if kind == "mps" and colon:
        if ":" in number or _index(number) != 0:
            raise made(f"device {device} is invalid: only mps or mps:0 is supported", "device")
        return "mps"
    if kind not in _NUMBERED or ":" in number:
        raise made(f"device {device} is invalid", "device")
    return f"{kind}:{_index(number) if colon else 0}"


def _index(number):
    if not (number.isascii() and number.isdigit()):
        raise ValueError("invalid digit found in string")
    return int(number)


def backend_of(backend):
    """Whether tensors are mapped or read."""
    if not isinstance(backend, str):
        raise TypeError(f"argument 'backend': '{type(backend).__name__}' object is not an instance of 'str'")
    if backend not in ("mmap", "pread"):
        backend.encode()
        raise made(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")', "backend")
    return backend


def _opened(cls, path, framework, device, backend):
    kind, place, backend = framework_of(framework), device_of(device), backend_of(backend)
    has_devices = kind in ("pytorch", "paddle")
    if place != "cpu" and not has_devices:
        raise made(f"Device {place} is not supported for framework {kind}", "device")
    is_mapped = kind == "pytorch" and backend == "mmap"
    try:
        opened = SafeOpen.__new__(cls, path, converter(kind), place if has_devices else None, is_mapped)
    except FormatError as error:
        raise refused(error, "Error while deserializing header", *_frame(path)) from None
    except WeighError as error:
        raise translated(error) from None
    except OSError as error:
        raise not_opened(error, path) from None
    except UnicodeError:
        raise
    except ValueError as error:
        # A path with a zero byte in it, which no system was asked about.
        raise not_opened(FileNotFoundError(errno.EINVAL, str(error)), path) from None
    _frameworks.module(_AT_ONCE.get(kind, "numpy"))
    opened._framework, opened._device = kind, place
    return opened


def _loaded(checkpoint, loader):
    from weigh._frameworks import _torch

    names = checkpoint.names("file")
    # What cannot be made is said before anything is read.
    for tensor in map(checkpoint.tensor, names):
        try:
            _torch.form(tensor.dtype, tensor.shape)
        except (TypeError, ValueError) as error:
            raise _unmade(tensor, error) from error
    try:
        return loader.load(checkpoint, [(name, None) for name in names])
    except WeighError as error:
        raise translated(error) from None


def _frame(path):
    try:
        with open(path, "rb") as file:
            return file.read(8), os.fstat(file.fileno()).st_size
    except OSError:
        return b"", 0


class safe_open(SafeOpen):  # noqa: N801
    """An open file, whose tensors are read when they are asked for. Closing it leaves them as they are.

    Args:
        filename: the path, ``str`` or ``os.PathLike``.
        framework: ``"pt"``, ``"np"``, ``"tf"``, ``"flax"``, ``"mlx"``, ``"paddle"``, or a longer name of these.
        device: where tensors go: for torch and paddle ``"cuda:0"`` and the like, or a number; else the CPU.
        backend: ``"mmap"`` maps the file, for torch: a tensor is its bytes, read when it is looked at, which nobody
            may write to or shorten meanwhile; ``"pread"`` reads into memory of its own. Other frameworks always read.

    Raises:
        FileNotFoundError: there is no such file; another ``OSError`` if it cannot be read.
        SafetensorError: the file is not sound, or an argument is not known.
    """

    __slots__ = ("_framework", "_device")

    def __new__(cls, filename, framework, device="cpu", *, backend="mmap"):
        return _opened(cls, path_of("filename", filename), framework, device, backend)

    def get_tensors(self, /):
        """All tensors, by name, in the order of their bytes. Onto a CUDA device they are copied while the file is read,
        into memory of their own with either backend.
        """
        loader = self._staged()
        return super().get_tensors() if loader is None else _loaded(self._checkpoint(), loader)

    def _staged(self):
        """What loads all tensors onto a CUDA device at once; ``None`` for any other."""
        if self._device == "cpu" or self._framework != "pytorch":
            return None
        return _frameworks.staged(_frameworks.module("torch"), self._device)

    def prefetch(self, plan=None, *, device=None, threads=8):
        """Starts to load tensors in the background, and returns a `PrefetchLoader` that hands each out once.

        Args:
            plan: a ``dict`` of names and ``None``, or a slice of step 1 of the first dimension; all tensors by default.
            device: where they go; by default the device that the file was opened for.
            threads: how many threads read, at most.

        Raises:
            SafetensorError: a name is not in the file, a slice has another step or is out of range, or torch has no
                such dtype.
        """
        from weigh.safetensors._prefetch import start

        return start(self, plan, device, threads)


class _safe_open_handle(safe_open):  # noqa: N801
    """What `safe_open` is, of a file that is open already: its name is opened again.

    Args:
        f: a file object with ``fileno`` and ``name``.
    """

    __slots__ = ()

    def __new__(cls, f, framework, device="cpu", *, backend="mmap"):
        f.fileno  # noqa: B018
        return _opened(cls, path_of("filename", f.name), framework, device, backend)


safe_open.__module__ = _safe_open_handle.__module__ = "weigh.safetensors"
