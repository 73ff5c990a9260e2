"""Writes the checkpoints that `cargo xtask bench scan` looks into: honest ones, large or of many tensors.

    files.py FOLDER [--scale SHARE]

writes FOLDER/large.pt, 32 tensors of F32, 2.1 GB; FOLDER/many.pt and FOLDER/many-legacy.pt, 20 000 tensors of 64
elements, as torch writes them today and as it did before 1.6.
"""

import argparse
from pathlib import Path

import torch

TENSORS, ELEMENTS = 32, 1 << 24

SMALLS, SMALL = 20_000, 64


def make(folder, scale):
    elements = max(1, round(ELEMENTS * scale))
    large = {f"model.layers.{number:02}.weight": torch.rand(elements) for number in range(TENSORS)}
    torch.save(large, folder / "large.pt")
    many = {f"layers.{number:05}.scale": torch.rand(SMALL) for number in range(SMALLS)}
    torch.save(many, folder / "many.pt")
    torch.save(many, folder / "many-legacy.pt", _use_new_zipfile_serialization=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="an empty folder")
    parser.add_argument("--scale", type=float, default=1.0, help="of the large file; 1 unless given")
    arguments = parser.parse_args()
    make(arguments.folder, arguments.scale)


if __name__ == "__main__":
    main()
