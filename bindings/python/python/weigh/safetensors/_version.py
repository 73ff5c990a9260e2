"""The version of ``safetensors`` whose interface this is."""

__version__ = "0.8.0"
