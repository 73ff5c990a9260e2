from weigh import safetensors as safetensors
from weigh import torch as torch
from weigh._checkpoint import Checkpoint as Checkpoint
from weigh._checkpoint import Piece as Piece
from weigh._checkpoint import Stream as Stream
from weigh._checkpoint import check as check
from weigh._checkpoint import load as load
from weigh._checkpoint import open as open
from weigh._convert import Conversion as Conversion
from weigh._convert import convert as convert
from weigh._errors import CancelledError as CancelledError
from weigh._errors import Finding as Finding
from weigh._errors import FormatError as FormatError
from weigh._errors import SliceError as SliceError
from weigh._errors import TensorNotFoundError as TensorNotFoundError
from weigh._errors import WeighError as WeighError
from weigh._save import Pending as Pending
from weigh._save import save as save
from weigh._save import save_async as save_async
from weigh._save import to_bytes as to_bytes
from weigh._scan import Scan as Scan
from weigh._scan import scan as scan
from weigh._weigh import Buffer as Buffer
from weigh._weigh import Tensor as Tensor
from weigh._weigh import __version__ as __version__

__all__ = [
    "Buffer",
    "CancelledError",
    "Checkpoint",
    "Conversion",
    "Finding",
    "FormatError",
    "Pending",
    "Piece",
    "Scan",
    "SliceError",
    "Stream",
    "Tensor",
    "TensorNotFoundError",
    "WeighError",
    "__version__",
    "check",
    "convert",
    "load",
    "open",
    "safetensors",
    "save",
    "save_async",
    "scan",
    "to_bytes",
    "torch",
]
