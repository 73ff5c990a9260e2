"""The names of the package ``safetensors``, which is version 0.8.0, and of 0.9 ``prefetch`` and ``get_tensor_meta``.

Change an import, ``from weigh.safetensors.torch import load_file``, or nothing: `install` makes
``import safetensors`` mean this package, and ``python -m weigh run PROGRAM`` runs a program that way.
"""

from weigh._weigh import PySafeSlice, TensorMeta
from weigh.safetensors._errors import SafetensorError
from weigh.safetensors._install import install, uninstall
from weigh.safetensors._open import _safe_open_handle, safe_open
from weigh.safetensors._prefetch import PrefetchLoader
from weigh.safetensors._serialize import TensorSpec, deserialize, serialize, serialize_file
from weigh.safetensors._version import __version__

__all__ = [
    "PrefetchLoader",
    "PySafeSlice",
    "SafetensorError",
    "TensorMeta",
    "TensorSpec",
    "__version__",
    "deserialize",
    "install",
    "safe_open",
    "serialize",
    "serialize_file",
    "uninstall",
]
