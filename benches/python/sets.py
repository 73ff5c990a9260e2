"""Makes one of the sets: `sets.py FOLDER NAME SCALE`."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file


def main():
    folder, name, scale = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    files, tensors, shape = {
        "big": (2, max(1, round(8 * scale)), (8192, 8192)),
        "mid": (4, max(1, round(128 * scale)), (1024, 2048)),
        "tiny": (1, 40_000, (64, 64)),
        "many": (1, 100_000, (4, 2)),
    }[name]
    torch.manual_seed(0)
    for number in range(files):
        made = {f"model.layers.{number}.{at}.weight": torch.randn(shape).to(torch.bfloat16) for at in range(tensors)}
        save_file(made, folder / f"model-{number}.safetensors")


if __name__ == "__main__":
    main()
