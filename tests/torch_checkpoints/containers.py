"""How a checkpoint gets into a file: every container and pickle protocol that torch writes, and honest rewritings.

Nothing is unpickled here.
"""

import zipfile
from contextlib import contextmanager

import numpy
import torch

CONTAINERS = ("zip", "legacy")

# Protocol 0 has no ids but text, which torch does not write.
PROTOCOLS = (1, 2, 3, 4, 5)

# The ways to save that torch has, as `save` takes them.
WAYS = [(container, protocol) for container in CONTAINERS for protocol in PROTOCOLS]

# One of each kind, for what does not depend on the rest.
FEW_WAYS = [("zip", 2), ("zip", 5), ("legacy", 2), ("legacy", 4)]

# Those that save objects without naming a function of Python's that makes them.
OBJECT_WAYS = [(container, protocol) for container, protocol in WAYS if protocol > 1]


def way_id(way):
    container, protocol = way
    return f"{container}{protocol}"


def save(value, path, way):
    """Saves a value with `torch.save`."""
    container, protocol = way
    torch.save(
        value,
        path,
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=container == "zip",
    )
    return path


@contextmanager
def checksums(wanted):
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(wanted)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


def save_without_checksums(value, path, protocol=2):
    """As a program that wants its checkpoints soon does it: every CRC-32 is 0."""
    with checksums(False):
        return save(value, path, ("zip", protocol))


def rewrite(source, target, change=lambda name, content: content, compression=zipfile.ZIP_STORED):
    """The members of a zip archive, in their order, in another. A member that `change` makes None of goes."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compression) as new:
        for entry in old.infolist():
            content = change(entry.filename.partition("/")[2], old.read(entry))
            if content is not None:
                new.writestr(zipfile.ZipInfo(entry.filename), content, compress_type=compression)
    return target


def deflate(source, target):
    """The same checkpoint with every member deflated."""
    return rewrite(source, target, compression=zipfile.ZIP_DEFLATED)


def without_byte_order(source, target):
    """The same checkpoint as torch before 2.1 wrote it: without the member that says the byte order."""
    return rewrite(source, target, lambda name, content: None if name == "byteorder" else content)


def big_endian(source, target, number_bytes):
    """The same checkpoint as a big-endian machine writes it, whose storages are all of numbers of so many bytes."""

    def change(name, content):
        if name == "byteorder":
            return b"big"
        if name.startswith("data/"):
            return numpy.frombuffer(content, f"V{number_bytes}").view("u1").reshape(-1, number_bytes)[:, ::-1].tobytes()
        return content

    return rewrite(source, target, change)


def change_pickle(source, target, change):
    """The same archive with the bytes of its pickle changed."""
    return rewrite(source, target, lambda name, content: change(content) if name == "data.pkl" else content)
