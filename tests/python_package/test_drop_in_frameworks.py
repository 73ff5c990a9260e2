"""Every dtype in every framework: read as the original reads it, written byte for byte as the original writes it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from drop_in_framework import FRAMEWORKS


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_dtype_makes_the_round_trip_with_the_original_both_ways(framework):
    for needed in (framework, "ml_dtypes"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    pytest.importorskip("safetensors", minversion="0.8")
    program = Path(__file__).with_name("drop_in_framework.py")
    ended = subprocess.run([sys.executable, program, framework], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("", 0), ended.stderr
