"""Loads files once, with one loader in one mode, and prints what that cost as a line of JSON.

    peer.py LOADER --mode MODE [--threads N] [--warm-up-bytes N] FILES...
    peer.py versions

The keys of the line are those of `weigh-load`, its counterpart in Rust. `docs/benchmarks.md` says
what the modes mean, and why each loader is used as it is here: as its own documentation has it, on
the way that is fastest on the processor.
"""

import argparse
import json
import mmap
import os
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy

import process
from answer import Checksum, middle_eighth

SLICES = ("slice-first", "slice-last")
MODES = ("own", "cold", "hold", "stream", *SLICES)


class Safetensors:
    """The reference: `mmap` gives views of the file, `pread` memory of the tensor's own."""

    package = "safetensors"
    modes = MODES

    def __init__(self, backend, threads):
        from safetensors import safe_open

        start_torch(threads)
        self.backend = backend
        self.safe_open = safe_open

    def open(self, path):
        return self.safe_open(path, framework="pt", device="cpu", backend=self.backend)

    def load(self, files, mode):
        # What `mmap` gives is the file's until it is copied.
        is_copied = self.backend == "mmap" and mode != "hold"
        tensors = self.stream(files)
        return {name: tensor.clone() if is_copied else tensor for name, tensor in tensors}

    def slices(self, files, mode):
        for path in files:
            with self.open(path) as file:
                for name in file.offset_keys():
                    tensor = file.get_slice(name)
                    rows, columns = tensor.get_shape()
                    if mode == "slice-first":
                        part = tensor[slice(*middle_eighth(rows))]
                    else:
                        part = tensor[:, slice(*middle_eighth(columns))]
                    yield name, part

    def stream(self, files):
        for path in files:
            with self.open(path) as file:
                for name in file.offset_keys():
                    yield name, file.get_tensor(name)


class Fastsafetensors:
    """Files to buffers, through its threads' bounce buffers; tensors are views of the buffers."""

    package = "fastsafetensors"
    modes = tuple(mode for mode in MODES if mode != "hold")

    def __init__(self, threads):
        import fastsafetensors

        start_torch(1)
        self.module = fastsafetensors
        self.options = {"device": "cpu", "nogds": True}
        if threads:
            self.options["max_threads"] = threads
        # The first of a process looks for the libraries of a GPU.
        fastsafetensors.SafeTensorsFileLoader(None, **self.options).close()

    def load(self, files, mode):
        loader = self.module.SafeTensorsFileLoader(None, **self.options)
        loader.add_filenames({0: files})
        buffers = loader.copy_files_to_device()
        tensors = dict(buffers.iter_local_tensors(loader.get_keys()))
        # The tensors hold what they need of these.
        buffers.close()
        loader.close()
        return tensors

    def slices(self, files, mode):
        for name, tensor in self.stream(files):
            yield name, cut(tensor, mode)

    def stream(self, files):
        loader = self.module.ParallelLoader(
            None,
            files,
            use_tqdm_on_load=False,
            accumulate_resident=False,
            borrowed_tensors=True,
            **self.options,
        )
        yield from loader.iterate_weights()
        loader.close()


class RunaiModelStreamer:
    """Files to a ring of buffers, by its threads; it hands the buffers over if that is asked."""

    package = "runai-model-streamer"
    modes = tuple(mode for mode in MODES if mode != "hold")

    def __init__(self, threads):
        if threads:
            os.environ["RUNAI_STREAMER_CONCURRENCY"] = str(threads)
        import runai_model_streamer

        start_torch(1)
        self.module = runai_model_streamer

    def load(self, files, mode):
        with self.module.SafetensorsStreamer() as streamer:
            streamer.stream_files(files, owned=True)
            return dict(streamer.get_tensors())

    def slices(self, files, mode):
        for name, tensor in self.stream(files):
            yield name, cut(tensor, mode)

    def stream(self, files):
        with self.module.SafetensorsStreamer() as streamer:
            streamer.stream_files(files, owned=False)
            yield from streamer.get_tensors()


class FromFile:
    """A yardstick: `numpy.fromfile`, which reads a file whole and finds no tensor in it."""

    package = "numpy"
    modes = ("own", "cold")

    def __init__(self, threads):
        pass

    def load(self, files, mode):
        return [numpy.fromfile(path, numpy.uint8) for path in files]


class Copy:
    """A yardstick: what it takes to copy from memory to memory, once the files are in some."""

    package = "numpy"
    modes = ("own",)

    def __init__(self, memory, threads):
        self.memory = memory

    def before(self, files):
        self.sources = [numpy.fromfile(path, numpy.uint8) for path in files]
        if self.memory == "touched":
            self.destinations = [numpy.zeros_like(source) for source in self.sources]
            for destination in self.destinations:
                destination[::process.PAGE] = 1

    def load(self, files, mode):
        if self.memory != "touched":
            self.destinations = [self.fresh(source.size) for source in self.sources]
        for source, destination in zip(self.sources, self.destinations):
            numpy.copyto(destination, source)
        return self.destinations

    def fresh(self, size):
        """Memory that no one has touched, straight from the system."""
        memory = process.anonymous(size)
        memory.madvise(mmap.MADV_HUGEPAGE if self.memory == "huge" else mmap.MADV_NOHUGEPAGE)
        return numpy.frombuffer(memory, numpy.uint8)


LOADERS = {
    "safetensors-mmap": lambda threads: Safetensors("mmap", threads),
    "safetensors-pread": lambda threads: Safetensors("pread", threads),
    "fastsafetensors": Fastsafetensors,
    "runai-model-streamer": RunaiModelStreamer,
    "numpy-fromfile": FromFile,
    "copy-to-touched": lambda threads: Copy("touched", threads),
    "copy-to-fresh": lambda threads: Copy("small", threads),
    "copy-to-fresh-huge": lambda threads: Copy("huge", threads),
}


def start_torch(threads):
    """Imports torch and makes it start its threads: one, unless more are asked for.

    With more it copies a tensor in parallel, which on two busy cores is fast or ten times slower.
    So the peers with threads of their own leave it at one.
    """
    import torch

    torch.set_num_threads(threads or 1)
    torch.zeros(1 << 22).clone()


def cut(tensor, mode):
    """The slice of a whole tensor, still a view of it."""
    dimension = 0 if mode == "slice-first" else -1
    start, stop = middle_eighth(tensor.shape[dimension])
    return tensor.narrow(dimension, start, stop - start)


def owned(part):
    """A copy of a slice, in memory of its own; it may be all there is in memory, if pread read it."""
    import torch

    return part.clone(memory_format=torch.contiguous_format)


def raw(tensor):
    """The bytes of a tensor, in row-major order."""
    import torch

    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()


def whole_files(buffers):
    """The tensors in buffers that each hold a file."""
    for data in buffers:
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        header.pop("__metadata__", None)
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            yield name, data[start + first : start + last]


def measure(loader, mode, files, warm_up):
    """Loads, and returns what goes into the line."""
    if hasattr(loader, "before"):
        loader.before(files)
    rate = process.first_touch(warm_up)
    checksum = Checksum()
    meter = process.Meter()
    if mode == "stream":
        for name, tensor in loader.stream(files):
            checksum.add(name, raw(tensor))
    elif mode in SLICES:
        result = {name: owned(part) for name, part in loader.slices(files, mode)}
    else:
        result = loader.load(files, mode)
    figures = meter.figures()
    if mode != "stream":
        if isinstance(result, dict):
            pairs = ((name, raw(tensor)) for name, tensor in result.items())
        else:
            pairs = whole_files(result)
        for name, data in pairs:
            checksum.add(name, data)
    return {
        "tensors": checksum.tensors,
        "bytes": checksum.bytes,
        "GBps": checksum.bytes / figures["seconds"] / 1e9,
        **figures,
        "first_touch_GBps": rate and rate / 1e9,
        "checksum": checksum.shown(),
    }


def versions():
    """The version of each package that is installed, or null."""
    found = {}
    for package in ("safetensors", "fastsafetensors", "runai-model-streamer", "torch", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def main():
    if sys.argv[1:] == ["versions"]:
        print(json.dumps(versions()))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("loader", choices=LOADERS)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--threads", type=int, default=0, help="the loader's own choice unless given")
    parser.add_argument("--warm-up-bytes", type=int, default=0)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    loader = LOADERS[arguments.loader](arguments.threads)
    if arguments.mode not in loader.modes:
        parser.error(f"{arguments.loader} has no mode {arguments.mode}")
    line = {
        "loader": arguments.loader,
        "version": version(loader.package),
        "mode": arguments.mode,
        "threads": arguments.threads,
        **measure(loader, arguments.mode, arguments.files, arguments.warm_up_bytes),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
