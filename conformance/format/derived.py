# SPDX-License-Identifier: Apache-2.0
"""The families of derived cases: small changes to a base, or small files made by rule.

Each family yields (base, operations): the name of a case, or `-`, and what derived.tsv says to do with it. The
expected results are the oracle's.
"""

from itertools import permutations, product

from oracle import BITS, check
from recipe import format_values, header_recipe

U64_MAX = (1 << 64) - 1


def families(files):
    """(family, base, operations) in the order of derived.tsv; `files` are the bytes of the named cases."""
    for family, members in [
        ("truncate", truncations(files)),
        ("byte", byte_changes(files)),
        ("delete", deletions(files)),
        ("white-space", white_space(files)),
        ("header-length", header_lengths(files)),
        ("dtype-size", dtype_sizes()),
        ("order", orders()),
        ("escape", escapes()),
        ("shape", shapes()),
    ]:
        for base, operations in members:
            yield family, base, operations


def header_end(file):
    return 8 + int.from_bytes(file[:8], "little")


def truncations(files):
    """Every length that a cut may leave."""
    for base in ["base_small", "base_tokens"]:
        for length in range(len(files[base])):
            yield base, f"truncate {length}"


def byte_changes(files):
    """Every other value of every byte of the length field and the header."""
    for base in ["base_small", "base_tokens"]:
        file = files[base]
        for offset in range(header_end(file)):
            by_result = {}
            for value in range(256):
                if value != file[offset]:
                    changed = file[:offset] + bytes([value]) + file[offset + 1 :]
                    result = check(changed)
                    key = (result.strict, result.compatible, tuple(result.findings))
                    by_result.setdefault(key, []).append(value)
            for values in by_result.values():
                yield base, f"set {offset} {format_values(values)}"


def deletions(files):
    """Every byte of the header left out, the length field made right."""
    for base in ["base_small", "base_tokens"]:
        end = header_end(files[base])
        for offset in range(8, end):
            yield base, f"delete {offset} 1 | length {end - 9}"


def white_space(files):
    """Each kind of JSON white space, and two bytes that are none, between every two tokens."""
    for base in ["base_small", "base_tokens"]:
        file = files[base]
        for offset in check(file).boundaries:
            for space in ["20", "09", "0A", "0D", "0B", "00"]:
                yield base, f"insert {offset} {space} | length {header_end(file) - 7}"


def header_lengths(files):
    """A length field that is a little off, the bytes left as they are."""
    bases = [
        "base_small",
        "base_tokens",
        "base_aligned",
        "base_empties",
        "base_no_tensors",
        "frame_ok",
        "js_trail_space",
        "js_trail_nl",
        "js_lead_space",
        "mt_only",
        "lay_no_data",
        "emp_mid",
    ]
    for base in bases:
        length = header_end(files[base]) - 8
        for change in (-8, -2, -1, 1, 2, 8):
            if length + change >= 0:
                yield base, f"length {length + change}"


def entry(name, dtype, shape, begin, end):
    dimensions = ",".join(str(dimension) for dimension in shape)
    return f'"{name}":{{"dtype":"{dtype}","shape":[{dimensions}],"data_offsets":[{begin},{end}]}}'


def one_tensor(dtype, shape, begin, end, data_len):
    """A file with one tensor, its data section at a multiple of 8."""
    header = "{" + entry("a", dtype, shape, begin, end) + "}"
    header += " " * (-len(header) % 8)
    return "-", header_recipe(header.encode(), bytes(data_len))


def dtype_sizes():
    """Every type with the right size and with wrong ones, and the odd counts of the types below a byte."""
    for dtype, bits in BITS.items():
        for size in (bits, bits - 1, bits + 1, bits * 2, bits // 2, 0):
            yield one_tensor(dtype, [8], 0, size, size)
    for dtype in ["F4", "F6_E2M3", "F6_E3M2"]:
        for count in range(10):
            size = count * BITS[dtype] // 8
            yield one_tensor(dtype, [count], 0, size, size)
            yield one_tensor(dtype, [count, 2], 0, 2 * count * BITS[dtype] // 8, size * 2)
    for dtype in BITS:
        for begin in (1, 2, 4):
            first = entry("p", "U8", [begin], 0, begin)
            second = entry("q", dtype, [8], begin, begin + BITS[dtype])
            header = "{" + first + "," + second + "}"
            header += " " * (-len(header) % 8)
            yield "-", header_recipe(header.encode(), bytes(begin + BITS[dtype]))


def orders():
    """Three tensors in every order of the header, any of them empty, and one empty tensor at every offset."""
    for sizes in product((0, 2), repeat=3):
        entries = []
        begin = 0
        for name, size in zip("abc", sizes):
            entries.append(entry(name, "U8", [size], begin, begin + size))
            begin += size
        for order in permutations(entries):
            yield "-", header_recipe(("{" + ",".join(order) + "}").encode(), bytes(begin))
    for place in range(8):
        entries = [
            entry("a", "U8", [2], 0, 2),
            entry("b", "U8", [4], 2, 6),
            entry("e", "U8", [0], place, place),
        ]
        for order in permutations(entries):
            yield "-", header_recipe(("{" + ",".join(order) + "}").encode(), bytes(6))
    # Two ranges against each other: every way in which they can touch, overlap or leave a gap.
    ranges = [(begin, end) for begin in range(4) for end in range(begin, 5)]
    for first, second in product(ranges, repeat=2):
        entries = [
            entry("a", "U8", [first[1] - first[0]], *first),
            entry("b", "U8", [second[1] - second[0]], *second),
        ]
        yield "-", header_recipe(("{" + ",".join(entries) + "}").encode(), bytes(4))


def escaped(text, index, hexadecimal):
    return f"{text[:index]}\\u{hexadecimal(ord(text[index]))}{text[index + 1 :]}"


def escapes():
    """Every character of the reserved key, the fields and a type, spelled as an escape."""
    spellings = [lambda number: f"{number:04x}", lambda number: f"{number:04X}"]
    tail = '"shape":[4],"data_offsets":[0,4]}'
    data = b"\x01\x02\x03\x04"
    for index in range(len("__metadata__")):
        for spelling in spellings:
            key = escaped("__metadata__", index, spelling)
            tensor = entry("a", "U8", [4], 0, 4)
            yield "-", header_recipe(f'{{"{key}":{{"k":"v"}},{tensor}}}'.encode(), data)
            yield "-", header_recipe(f'{{"{key}":{{"k":1}},{tensor}}}'.encode(), data)
            twice = f'{{"__metadata__":{{}},{tensor},"{key}":{{}}}}'
            yield "-", header_recipe(twice.encode(), data)
            wrong = escaped("__metadata__", index, lambda number: spelling(number + 1))
            yield "-", header_recipe(f'{{"{wrong}":{{"k":"v"}},{tensor}}}'.encode(), data)
    whole = {"dtype": '"U8"', "shape": "[4]", "data_offsets": "[0,4]"}
    for name in whole:
        for index in range(len(name)):
            for number_offset in (0, 1):
                key = escaped(name, index, lambda number: f"{number + number_offset:04x}")
                fields = ",".join(
                    f'"{key if other == name else other}":{value}' for other, value in whole.items()
                )
                yield "-", header_recipe(f'{{"a":{{{fields}}}}}'.encode(), data)
            key = escaped(name, index, lambda number: f"{number:04x}")
            fields = ",".join(f'"{other}":{value}' for other, value in whole.items())
            yield "-", header_recipe(f'{{"a":{{{fields},"{key}":{whole[name]}}}}}'.encode(), data)
    for dtype in BITS:
        for index in range(len(dtype)):
            spelled = escaped(dtype, index, spellings[0])
            size = BITS[dtype] // 8 * 4 if BITS[dtype] >= 8 else BITS[dtype] // 2
            yield "-", header_recipe(
                ("{" + entry("a", spelled, [4], 0, size) + "}").encode(), bytes(size)
            )
    for letter in range(0x20, 0x7F):
        # Every letter after a backslash: eight are escapes, `u` wants digits, the others are faults.
        header = '{"__metadata__":{"k":"\\' + chr(letter) + '"},"a":{"dtype":"U8",' + tail + "}"
        yield "-", header_recipe(header.encode(), data)


def shapes():
    """Dimensions whose product or size is at the edge of 64 bits, in every order, and offsets there."""
    dimension_lists = [
        [U64_MAX],
        [U64_MAX + 1],
        [U64_MAX, 1],
        [U64_MAX, 0],
        [U64_MAX, 2, 0],
        [U64_MAX, U64_MAX, 0],
        [1 << 63],
        [(1 << 63) - 1],
        [1 << 63, 2],
        [(1 << 63) - 1, 2],
        [1 << 32, 1 << 32],
        [1 << 32, (1 << 32) - 1],
        [(1 << 32) - 1, (1 << 32) + 1],
        [1 << 62, 2, 2],
        [1 << 62, 3, 1],
        [1 << 61, 0, 8],
        [1 << 61, 0, 7],
        [3, U64_MAX // 3],
        [3, U64_MAX // 3 + 1],
        [1 << 60, 1 << 60, 0],
    ]
    for dtype in ["BOOL", "F4", "F6_E3M2", "BF16", "F32", "C64"]:
        for dimensions in dimension_lists:
            for order in sorted(set(permutations(dimensions))):
                yield one_tensor(dtype, order, 0, 0, 0)
    for dtype, bits in [("U8", 8), ("U16", 16), ("U32", 32), ("U64", 64), ("F4", 4), ("F6_E2M3", 6)]:
        # The largest count that is whole bytes and fits, and one more group of elements.
        step = {4: 2, 6: 4}.get(bits, 1)  # elements that make whole bytes
        largest = min(U64_MAX * 8 // bits, U64_MAX) // step * step
        for count in (largest, largest + step):
            for end in (0, U64_MAX):
                yield one_tensor(dtype, [count], 0, end, 0)
    for begin, end in [
        (0, U64_MAX),
        (0, U64_MAX + 1),
        (U64_MAX, U64_MAX + 1),
        (U64_MAX, 0),
        (1, U64_MAX),
    ]:
        for shape in ([U64_MAX], [U64_MAX - 1], [1], [0]):
            yield one_tensor("U8", shape, begin, end, 1)
