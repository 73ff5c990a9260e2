"""Checkpoints made by torch, and what the program makes of them.

`WEIGH_BIN` names the program. Checkpoints are made when a test needs them. Those that call anything are never
unpickled but by `torch.load(weights_only=True)`, which refuses them.
"""

import os
import warnings
from pathlib import Path

import pytest

from program import Weigh


@pytest.fixture(scope="session")
def weigh():
    program = os.environ.get("WEIGH_BIN")
    if not program:
        pytest.fail("WEIGH_BIN does not name the program")
    return Weigh(Path(program).resolve())


@pytest.fixture(autouse=True)
def quiet_torch():
    """Torch warns that quantized, nested and compressed sparse tensors, and typed storages, are not for ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
