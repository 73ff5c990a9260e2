"""Writes the checkpoints that `cargo xtask bench load` loads, and what a right load gives.

    sets.py FOLDER --set big|mid|tiny [--scale SHARE]

writes FOLDER/SET/*.safetensors, an index where there are several, and FOLDER/SET.json with the
checksums that `answer.py` describes. The bytes are random and the same every time. A set that
is there already, of the same scale, is left as it is.
"""

import argparse
import json
import os
import struct
from pathlib import Path

import numpy

from answer import Checksum, middle_eighth

# Shards, tensors in each, rows and columns; all tensors are BF16.
SETS = {
    "big": (2, 8, 8192, 8192),
    "mid": (4, 128, 1024, 2048),
    "tiny": (1, 40_000, 64, 64),
}

# What a change of the bytes written must change, so that no older set is taken for this one.
VERSION = 1


def scaled(name, scale):
    """The shape of a set: fewer rows in each tensor, or fewer tensors where those are small."""
    shards, tensors, rows, columns = SETS[name]
    if name == "tiny":
        return shards, max(1, round(tensors * scale)), rows, columns
    return shards, tensors, max(16, round(rows * scale)), columns


def make(folder, name, scale):
    """Writes the set unless it is there, and returns what a right load gives."""
    shape = scaled(name, scale)
    described = folder / f"{name}.json"
    if described.exists():
        answer = json.loads(described.read_text())
        if answer["version"] == VERSION and answer["shape"] == list(shape):
            return answer
        described.unlink()
    shards, tensors, rows, columns = shape
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for old in [*place.glob("*.safetensors"), *place.glob("*.index.json")]:
        old.unlink()
    sums = {"whole": Checksum(), "slice-first": Checksum(), "slice-last": Checksum()}
    files, places = [], {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors" if shards > 1 else "model.safetensors"
        names = [f"model.layers.{shard}.experts.{number}.weight" for number in range(tensors)]
        # As the reference writes them: by the bytes of the name.
        names.sort()
        random = numpy.random.Generator(numpy.random.PCG64([VERSION, list(SETS).index(name), shard]))
        write(place / file, names, rows, columns, random, sums)
        files.append(file)
        places.update(dict.fromkeys(names, file))
    if shards > 1:
        index = {"metadata": {"total_size": sums["whole"].bytes}, "weight_map": places}
        (place / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    answer = {
        "version": VERSION,
        "shape": list(shape),
        "files": files,
        "answers": {
            part: {"tensors": it.tensors, "bytes": it.bytes, "checksum": it.shown()}
            for part, it in sums.items()
        },
    }
    described.write_text(json.dumps(answer, indent=1) + "\n")
    return answer


def write(path, names, rows, columns, random, sums):
    """Writes one file, a tensor at a time, and adds its tensors to the checksums."""
    size = rows * columns * 2
    entries = {
        name: {
            "dtype": "BF16",
            "shape": [rows, columns],
            "data_offsets": [number * size, (number + 1) * size],
        }
        for number, name in enumerate(names)
    }
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    first, last = middle_eighth(rows), middle_eighth(columns)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)))
        file.write(header)
        for name in names:
            tensor = numpy.frombuffer(random.bytes(size), "<u2").reshape(rows, columns)
            file.write(tensor.data)
            for part, taken in (
                ("whole", tensor),
                ("slice-first", tensor[slice(*first)]),
                ("slice-last", tensor[:, slice(*last)]),
            ):
                data = numpy.ascontiguousarray(taken).reshape(-1).view(numpy.uint8)
                sums[part].add(name, data)
        file.flush()
        # Pages that are not on disk yet could not be dropped from the cache.
        os.fsync(file.fileno())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size; 1 unless given")
    arguments = parser.parse_args()
    repository = Path(__file__).resolve().parents[2]
    folder = arguments.folder.resolve()
    if folder == repository or repository in folder.parents:
        parser.error("the folder is in the repository; name one outside")
    make(folder, arguments.set, arguments.scale)


if __name__ == "__main__":
    main()
