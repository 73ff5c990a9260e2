"""One measurement in a process of its own: `worker.py WHAT WAY FILE…` prints one line of JSON.

Each answer is verified by a checksum that is taken after the clock has stopped, so nobody wins by not reading.
"""

import json
import os
import resource
import sys
import threading
import time
import zlib


def main():
    what, way, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    run = {"owned": owned, "lazy": lazy, "list": listing, "ticker": ticker, "import": imports}[what]
    print(json.dumps(run(way, files)))


def measured(work):
    """What work gives, the seconds it took, and the processor's seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_SELF)
    processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return result, {"seconds": seconds, "processor": processor, "peak": now.ru_maxrss * 1024}


def checksum(tensors):
    """A number that all bytes of all tensors and their names make, whatever the order of the tensors."""
    import torch

    total = 0
    for name, tensor in tensors.items():
        data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
        total ^= zlib.crc32(data, zlib.crc32(name.encode()))
    return total


def touch_memory(files):
    """Touches as much memory as will be needed, and gives it back: the first use of memory by a virtual machine costs
    whoever comes first."""
    import mmap

    size = sum(os.path.getsize(file) for file in files)
    for huge in (False, True):
        block = mmap.mmap(-1, size + (2 << 20))
        if huge and hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, 4096):
            block[at] = 1
        block.close()


def owned(way, files):
    """All tensors in memory of their own."""
    touch_memory(files)
    work = OWNED[way]()
    tensors, figures = measured(lambda: work(files))
    return figures | {"checksum": checksum(tensors), "tensors": len(tensors)}


def _weigh():
    from weigh.safetensors.torch import load_file

    return lambda files: {k: v for file in files for k, v in load_file(file, backend="pread").items()}


def _weigh_load():
    import weigh
    import weigh._frameworks._torch  # noqa: F401

    return lambda files: {k: v for file in files for k, v in weigh.open(file).load(framework="torch").items()}


def _pread():
    from safetensors.torch import load_file

    return lambda files: {k: v for file in files for k, v in load_file(file, backend="pread").items()}


def _mmap_clone():
    from safetensors.torch import load_file

    return lambda files: {k: v.clone() for file in files for k, v in load_file(file).items()}


def _mmap():
    from safetensors.torch import load_file

    return lambda files: {k: v for file in files for k, v in load_file(file).items()}


def _fastsafetensors():
    from fastsafetensors import ParallelLoader

    def load(files):
        loader = ParallelLoader(pg=None, hf_weights_files=files, device="cpu", nogds=True, use_tqdm_on_load=False)
        # Its tensors are views of buffers that `close` frees.
        tensors = {name: tensor.clone() for name, tensor in loader.iterate_weights()}
        loader.close()
        return tensors

    return load


def _runai():
    from runai_model_streamer import SafetensorsStreamer

    def load(files):
        with SafetensorsStreamer() as streamer:
            streamer.stream_files(files)
            # Its tensors are views of a ring that is used again.
            return {name: tensor.clone() for name, tensor in streamer.get_tensors()}

    return load


OWNED = {
    "weigh": _weigh,
    "weigh-load": _weigh_load,
    "safetensors-pread": _pread,
    "safetensors-mmap-clone": _mmap_clone,
    "safetensors-load-file": _mmap,
    "fastsafetensors": _fastsafetensors,
    "runai": _runai,
}


def lazy(way, files):
    """`load_file` as it is called by default: tensors are there, and nothing was read."""
    if way == "weigh":
        from weigh.safetensors.torch import load_file
    else:
        from safetensors.torch import load_file
    tensors, figures = measured(lambda: [load_file(file) for file in files])
    return figures | {"tensors": sum(map(len, tensors)), "checksum": checksum(tensors[0])}


def listing(way, files):
    """Names, shapes and dtypes of a file."""
    if way == "weigh":
        import weigh

        def work():
            return [(name, tensor.shape, tensor.dtype) for name, tensor in weigh.open(files[0]).items()]

    else:
        if way == "weigh-drop-in":
            from weigh.safetensors import safe_open
        else:
            from safetensors import safe_open

        def work():
            with safe_open(files[0], "numpy") as file:
                slices = ((name, file.get_slice(name)) for name in file.keys())
                return [(name, tuple(it.get_shape()), it.get_dtype()) for name, it in slices]

    found, figures = measured(work)
    return figures | {"tensors": len(found), "checksum": zlib.crc32(repr(sorted(found)).encode())}


def ticker(way, files):
    """The gaps of a thread that sleeps a millisecond at a time, while another loads."""
    touch_memory(files)
    gaps, stop = [], threading.Event()

    def tick():
        last = time.perf_counter()
        while not stop.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last - 0.001)
            last = now

    if way == "native":
        # The same beside a load in a process of its own, which has no part in this interpreter's lock.
        import subprocess

        command = [os.environ["WEIGH_BIN"], "bench", *files, "--runs", "1"]

        def load(_):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return {}

    else:
        load = OWNED[way]()
    thread = threading.Thread(target=tick)
    thread.start()
    time.sleep(0.05)
    gaps.clear()
    tensors, figures = measured(lambda: load(files))
    during = sorted(gaps) or [0.0]
    stop.set()
    thread.join()
    figures |= {"p99": during[int(len(during) * 0.99)], "most": during[-1], "ticks": len(during)}
    return figures | {"checksum": checksum(tensors) if tensors else None}


def imports(way, _):
    """Seconds that an import takes in a new interpreter, beyond those of the interpreter itself."""
    import subprocess

    def seconds(program):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return time.perf_counter() - began

    empty = min(seconds("pass") for _ in range(10))
    return {"seconds": min(seconds(f"import {way}") for _ in range(10)) - empty, "checksum": None}


if __name__ == "__main__":
    main()
