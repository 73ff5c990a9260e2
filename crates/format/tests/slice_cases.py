"""Writes `slice_cases.txt`: what numpy takes of an array by an index.

    pip install numpy==2.4.6
    python crates/format/tests/slice_cases.py

A line has a shape, an index as it stands between the brackets, and either the shape and the elements of
the result or the name of the exception; tabs separate them. The elements of an array are their own numbers,
in C order. Running it again writes the same bytes.
"""

import random
from math import prod
from pathlib import Path

import numpy

SEED = 5
CASES = 1_200
LARGEST_FILE = 60_000
EXTREMES = [-(10**30), -(2**63) - 1, -(2**63), 2**63 - 1, 2**63, 10**30]

# Both sides of every boundary of one dimension.
SIZES = [0, 1, 5]
PLACES = ["-6", "-5", "-1", "0", "1", "4", "5", *map(str, EXTREMES)]
BOUNDS = ["", "-7", "-6", "-5", "-1", "0", "3", "4", "5", "6"]
STEPS = ["", "-1", "2", "-2", "5", "-5", "0"]

BY_HAND = [
    ([], "..."),
    ([], "0"),
    ([], ":"),
    ([3], "...,..."),
    ([3], "0,..."),
    ([3], "...,0"),
    ([3], "0,0"),
    ([3], "0,...,0"),
    ([3], "0,"),
    ([2, 3], "...,"),
    ([2, 3], " 0 : 1 , : "),
    ([2, 3, 4], "0:10,:,::2"),
    ([2, 3, 4], "...,-1"),
    ([2, 3, 4], "-1,...,::-2"),
    ([2, 3, 4], ":,:,:,..."),
    ([2, 3, 4], ":,:,:,:"),
    ([2, 3, 4], "::-1,::-1,::-1"),
    ([2, 0, 4], "1,:,2"),
    ([2, 0, 4], "1,0,2"),
    ([2, 0, 4], "2,:,2"),
    ([1] * 64, ",".join("0" * 64)),
    ([1] * 64, ",".join(["0", "...", ":"])),
    ([1] * 64, ",".join("0" * 65)),
]


def main(path):
    lines = {line(shape, index) for shape, index in BY_HAND}
    lines |= {line([size], place) for size in SIZES for place in PLACES}
    lines |= set(one_dimension())
    generator = random.Random(SEED)
    while len(lines) < CASES:
        shape = [generator.randrange(0, 6) for _ in range(generator.randrange(0, 5))]
        lines.add(line(shape, an_index(generator, len(shape))))
    text = "# shape, index, numpy's shape, numpy's elements (slice_cases.py writes this)\n"
    text += "".join(sorted(lines))
    if len(text) > LARGEST_FILE:
        raise SystemExit(f"{path.name} would have {len(text)} bytes")
    path.write_text(text, newline="\n")


def line(shape, index):
    """One case. The index is text of this file, not of anybody else."""
    array = numpy.arange(prod(shape)).reshape(shape)
    try:
        result = eval(f"array[{index}]", {"array": array})
    except (IndexError, OverflowError, ValueError) as error:
        return f"{words(shape)}\t{index}\t{type(error).__name__}\n"
    elements = numpy.asarray(result)
    return f"{words(shape)}\t{index}\t{words(elements.shape)}\t{words(elements.ravel())}\n"


def words(numbers):
    return " ".join(str(number) for number in numbers)


def one_dimension():
    """Every pair of bounds with an ordinary step, and some with every step."""
    for start in BOUNDS:
        for stop in BOUNDS:
            for step in ("", "-1"):
                yield line([5], f"{start}:{stop}:{step}" if step else f"{start}:{stop}")
    for size in SIZES:
        for step in [*STEPS, *map(str, EXTREMES)]:
            for bounds in (":", "1:4", "4:1", "-1:-4", "9:-9", *(f"{it}:{-it}" for it in EXTREMES)):
                if step in STEPS[:4] or bounds in (":", "9:-9"):
                    yield line([size], f"{bounds}:{step}")


def an_index(generator, rank):
    parts = [a_part(generator) for _ in range(generator.randrange(0, rank + 1))]
    if not parts or generator.random() < 0.2:
        parts.insert(generator.randrange(0, len(parts) + 1), "...")
    return ",".join(parts)


def a_part(generator):
    kind = generator.random()
    if kind < 0.2:
        return str(generator.randrange(-3, 3))
    if kind < 0.35:
        return ":"
    start, stop = (generator.choice(["", str(generator.randrange(-7, 8))]) for _ in range(2))
    step = generator.choice(["", "", ":1", ":2", ":3", ":-1", ":-1", ":-2", ":-3"])
    return f"{start}:{stop}{step}"


if __name__ == "__main__":
    main(Path(__file__).resolve().with_name("slice_cases.txt"))
