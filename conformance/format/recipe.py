# SPDX-License-Identifier: Apache-2.0
"""The recipe language of the corpus: files written as text, and changes made to a file.

README.md has the grammar. This module is its reference implementation.
"""

import re

PLAIN = re.compile(rb"[!-$&-)+-~]")  # printable ASCII without space, `%` and `*`


def encode_piece(data):
    """Bytes as the text of one piece."""
    text = "".join(
        chr(byte) if PLAIN.fullmatch(bytes([byte])) else f"%{byte:02X}" for byte in data
    )
    # A piece that spells a keyword would be taken for it.
    return "%64ata" if text == "data" else text


def decode_piece(piece):
    """The bytes of one piece, `text` or `text*count`."""
    text, star, count = piece.partition("*")
    data = re.sub(
        rb"%([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), text.encode("ascii")
    )
    return data * int(count) if star else data


def build(recipe):
    """The bytes of the file that a recipe describes."""
    words = recipe.split(" ")
    length = None
    if words[0].startswith("length="):
        length = int(words.pop(0).removeprefix("length="))
    keyword = words.pop(0)
    if keyword == "bytes":
        return b"".join(decode_piece(word) for word in words)
    if keyword != "header":
        raise ValueError(f"not a recipe: {recipe[:60]}")
    split = words.index("data") if "data" in words else len(words)
    header = b"".join(decode_piece(word) for word in words[:split])
    data = b"".join(decode_piece(word) for word in words[split + 1 :])
    length = len(header) if length is None else length
    return length.to_bytes(8, "little") + header + data


def header_recipe(header, data=b""):
    """The recipe of a file with this header text and this data section, zeros written as a run."""
    recipe = "header " + encode_piece(header)
    if data and not data.strip(b"\0"):
        recipe += f" data %00*{len(data)}"
    elif data:
        recipe += " data " + encode_piece(data)
    return recipe


def parse_values(values):
    """`00-1F,22` as the byte values it stands for."""
    result = []
    for part in values.split(","):
        low, dash, high = part.partition("-")
        result.extend(range(int(low, 16), int(high if dash else low, 16) + 1))
    return result


def format_values(values):
    """Byte values as ranges: the opposite of `parse_values`."""
    values = sorted(values)
    ranges = []
    for value in values:
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return ",".join(
        f"{low:02X}" if low == high else f"{low:02X}-{high:02X}" for low, high in ranges
    )


def expand(base, operations):
    """Every file that a row of derived.tsv stands for: one for each value of a `set`, else one.

    `base` is the bytes of the base, None for a row without one, whose operation is a recipe.
    """
    if base is None:
        return [build(operations)]
    files = [base]
    for operation in operations.split(" | "):
        files = [changed for file in files for changed in apply(file, operation)]
    return files


def apply(file, operation):
    verb, *arguments = operation.split(" ")
    if verb == "truncate":
        return [file[: int(arguments[0])]]
    if verb == "length":
        return [int(arguments[0]).to_bytes(8, "little") + file[8:]]
    offset = int(arguments[0])
    if verb == "set":
        return [
            file[:offset] + bytes([value]) + file[offset + 1 :]
            for value in parse_values(arguments[1])
        ]
    if verb == "insert":
        return [file[:offset] + bytes.fromhex(arguments[1]) + file[offset:]]
    if verb == "delete":
        return [file[:offset] + file[offset + int(arguments[1]) :]]
    raise ValueError(f"not an operation: {operation}")
