"""Writes the checkpoint that `cargo xtask bench write` writes again, and what has to come of it.

    source.py FOLDER [--scale SHARE]

writes FOLDER/model.safetensors, FOLDER/shards/ with the same tensors in several files and an index,
FOLDER/model.pt with them as torch saves them, FOLDER/small.pt with many that are small,
and FOLDER/source.json with the digest, SHA-256, of every file that is to be written of them. All are
as the reference implementation writes them. The tensors are F32; their bits are random and the same
every time, finite and far from the limits of BF16, so that a cast loses nothing but digits.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy
from safetensors import TensorSpec, serialize_file
from safetensors.numpy import save_file

# Tensors, how many of them are in a shard, rows and columns: 2.1 GB.
TENSORS, SHARD, ROWS, COLUMNS = 128, 32, 4096, 1024

# Tensors of a checkpoint of many that are small, and how many elements each has.
SMALLS, SMALL = 20_000, 64

# What the benchmark changes: a part of each name, and a pair of the metadata.
RENAMED = ("layers", "blocks")
NOTE = {"note": "written by the benchmark"}

# Of the bits of a float: this one set and that one not, its magnitude is from 2^-63 to below 2.
SET, UNSET = numpy.uint32(0x2000_0000), numpy.uint32(0x4000_0000)


def make(folder, scale):
    """Writes the files and returns what they and those made of them are to be."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = model(scale)
    size = sum(tensor.nbytes for tensor in tensors.values())
    source = folder / "model.safetensors"
    save_file(tensors, source)
    answer = {
        "bytes": size,
        "shard_bytes": size * SHARD // TENSORS,
        "source": digest(source),
        "shards": shards(folder / "shards", tensors, size),
    }
    trial = folder / "trial.safetensors"
    save_file({name.replace(*RENAMED): tensor for name, tensor in tensors.items()}, trial)
    answer["renamed"] = digest(trial)
    save_file(tensors, trial, metadata=NOTE)
    answer["noted"] = digest(trial)
    save_as_bfloat16(tensors, trial)
    answer["cast"] = digest(trial)
    trial.unlink()
    describe(folder, answer)
    return answer


def describe(folder, answer):
    (folder / "source.json").write_text(json.dumps(answer, indent=1) + "\n")


def random(number, shape):
    """A tensor of random bits that are a finite float."""
    generator = numpy.random.Generator(numpy.random.PCG64(number))
    bits = numpy.frombuffer(generator.bytes(4 * shape[0] * shape[1]), "<u4")
    return (bits & ~UNSET | SET).view("<f4").reshape(shape)


def shards(folder, tensors, size):
    """Writes the tensors in several files, with an index; returns the names and digests of the files."""
    folder.mkdir()
    names, digests, places = sorted(tensors), {}, {}
    count = len(names) // SHARD
    for number in range(count):
        file = f"model-{number + 1:05}-of-{count:05}.safetensors"
        chosen = names[number * SHARD : (number + 1) * SHARD]
        save_file({name: tensors[name] for name in chosen}, folder / file)
        digests[file] = digest(folder / file)
        places.update(dict.fromkeys(chosen, file))
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    return digests


def save_as_bfloat16(tensors, path):
    """Casts by the bits, to the nearest and in a tie to the even, and saves that."""
    halves = {name: upper_half(tensor.view("<u4")) for name, tensor in tensors.items()}
    specs = {
        name: TensorSpec(
            dtype="bfloat16",
            shape=half.shape,
            data_ptr=half.ctypes.data,
            data_len=half.nbytes,
        )
        for name, half in halves.items()
    }
    serialize_file(specs, path)


def make_for_torch(folder, scale):
    """Writes the checkpoints of torch and returns what conversions of them are to be."""
    trial = folder / "trial.safetensors"
    small = {f"layers.{number:05}.scale": random(number, (1, SMALL)) for number in range(SMALLS)}
    answer = {
        "converted": save_for_torch(model(scale), folder / "model.pt", trial),
        "small_converted": save_for_torch(small, folder / "small.pt", trial),
        "small_bytes": sum(tensor.nbytes for tensor in small.values()),
    }
    trial.unlink()
    return answer


def model(scale):
    """The tensors of the checkpoint, by name."""
    shape = (max(1, round(ROWS * scale)), COLUMNS)
    return {f"model.layers.{number:03}.weight": random(number, shape) for number in range(TENSORS)}


def save_for_torch(tensors, path, trial):
    """Writes a checkpoint of torch; returns the digest of the safetensors that is to come of it."""
    import torch

    torch.save({name: torch.from_numpy(tensor) for name, tensor in tensors.items()}, path)
    save_file(tensors, trial, metadata={"format": "pt"})
    return digest(trial)


def upper_half(bits):
    """What is left of the bits of floats that are rounded to their upper sixteen; none is large."""
    half = bits >> 16
    lower = bits & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (half & 1 == 1))
    return (half + up).astype("<u2")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where there are none of these files yet")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size; 1 unless given")
    arguments = parser.parse_args()
    answer = make(arguments.folder, arguments.scale)
    describe(arguments.folder, answer | make_for_torch(arguments.folder, arguments.scale))


if __name__ == "__main__":
    main()
