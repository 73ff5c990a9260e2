"""Writes a file once, in one way, and prints what that cost as a line of JSON.

    peer.py save SOURCE TARGET [--sync] [--warm-up-bytes N]
    peer.py cast SOURCE TARGET [--sync] [--warm-up-bytes N] [--threads N]
    peer.py convert SOURCE TARGET [--sync] [--warm-up-bytes N]
    peer.py halve SOURCE TARGET [--sync] [--warm-up-bytes N]
    peer.py sync TARGET
    peer.py versions

`save` is the reference's `save_file`, of arrays that are in memory; `cast` is torch, from file to
file; `convert` is torch's `load`, which maps the file, and `save_file`. The other two are yardsticks: `halve` reads a file and writes half of what it read, `sync`
makes four small writes and syncs after each. `weigh-save` is the counterpart of `save` in Rust; the
keys of the line are those that it prints. Starting Python and its packages is not in the time.
"""

import argparse
import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "load"))

import process  # noqa: E402 - it is beside the other benchmark

# What `halve` reads at a time: so much that calls cost nothing, and that it stays in the processor's cache.
BLOCK = 1 << 20

# What `sync` writes at a time, and how often: as an edit of a header has it.
PAGE, SYNCS = 4096, 4


def save(arguments):
    from safetensors.numpy import load_file, save_file

    arrays = load_file(arguments.source)
    # Every page of them is there before the clock starts.
    arrays = {name: array.copy() for name, array in arrays.items()}
    meter = touch_and_start(arguments)
    save_file(arrays, arguments.target)
    sync_if_asked(arguments)
    return meter.figures()


def cast(arguments):
    import torch
    from safetensors.torch import load_file, save_file

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    # The first cast of a process starts the threads.
    torch.zeros(1 << 22).to(torch.bfloat16)
    meter = touch_and_start(arguments)
    tensors = load_file(arguments.source)
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    save_file(tensors, arguments.target)
    sync_if_asked(arguments)
    return meter.figures()


def convert(arguments):
    import torch
    from safetensors.torch import save_file

    meter = touch_and_start(arguments)
    tensors = torch.load(arguments.source, map_location="cpu", mmap=True, weights_only=True)
    save_file(tensors, arguments.target, metadata={"format": "pt"})
    sync_if_asked(arguments)
    return meter.figures()


def halve(arguments):
    block = memoryview(bytearray(BLOCK))
    meter = touch_and_start(arguments)
    with (
        open(arguments.source, "rb", buffering=0) as source,
        open(arguments.target, "wb", buffering=0) as target,
    ):
        while count := source.readinto(block):
            # Whatever is left over is not worth a loop: a file system takes a block whole.
            if target.write(block[: count // 2]) != count // 2:
                raise OSError("a write was cut short")
        if arguments.sync:
            os.fsync(target.fileno())
    return meter.figures()


def sync(arguments):
    with open(arguments.target, "wb", buffering=0) as target:
        target.write(bytes(PAGE * SYNCS))
        os.fsync(target.fileno())
        meter = process.Meter()
        for number in range(SYNCS):
            os.pwrite(target.fileno(), b"\1" * PAGE, PAGE * number)
            os.fsync(target.fileno())
        return meter.figures()


def touch_and_start(arguments):
    """Has the host make memory ready, and then starts the clock."""
    rate = process.first_touch(arguments.warm_up_bytes)
    arguments.first_touch = rate and rate / 1e9
    return process.Meter()


def sync_if_asked(arguments):
    if arguments.sync:
        with open(arguments.target, "rb") as file:
            os.fsync(file.fileno())


def versions():
    """The version of each package that is installed, or null."""
    found = {}
    for package in ("safetensors", "torch", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("versions")
    for work in (save, cast, convert, halve, sync):
        command = commands.add_parser(work.__name__)
        command.set_defaults(work=work, first_touch=None)
        if work is not sync:
            command.add_argument("source")
            command.add_argument("--sync", action="store_true", help="until it is on the disk")
            command.add_argument("--warm-up-bytes", type=int, default=0)
        command.add_argument("target")
        if work is cast:
            command.add_argument("--threads", type=int, default=0, help="torch's own choice unless given")
    arguments = parser.parse_args()
    if arguments.command == "versions":
        line = versions()
    else:
        line = {**arguments.work(arguments), "first_touch_GBps": arguments.first_touch}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
