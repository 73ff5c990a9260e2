"""What this process has cost so far, as Linux counts it, and memory that its host has ready."""

import mmap
import resource
import time

import numpy

PAGE = 4096


class Meter:
    """Counts from when it is made: make it, load, then ask for `figures`."""

    def __init__(self):
        # What came before, the memory touched on purpose too, does not belong to the peak.
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        self.resident = field("/proc/self/status", "VmRSS") * 1024
        self.counts = counts()
        self.processor = time.process_time()
        self.clock = time.perf_counter()

    def figures(self):
        """Seconds first, for asking for the rest takes time too."""
        seconds = time.perf_counter() - self.clock
        processor = time.process_time() - self.processor
        spent = {name: after - self.counts[name] for name, after in counts().items()}
        return {
            "seconds": seconds,
            "cpu_seconds": processor,
            "rss_before_bytes": self.resident,
            "peak_rss_bytes": field("/proc/self/status", "VmHWM") * 1024,
            **spent,
        }


def counts():
    """Faults of all threads, and bytes read: by system calls, and from storage."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "minor_faults": usage.ru_minflt,
        "major_faults": usage.ru_majflt,
        "rchar": field("/proc/self/io", "rchar"),
        "read_bytes": field("/proc/self/io", "read_bytes"),
    }


def field(path, name):
    """The number that follows `name:` in a file of /proc."""
    with open(path) as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    raise LookupError(f"no {name} in {path}")


def anonymous(size):
    """Fresh memory of this process alone: what Python maps unless told is shared, and costs more."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def first_touch(size):
    """Touches and frees `size` bytes of fresh memory; returns bytes a second, or None for none.

    A virtual machine gives free memory back to its host, and the first to ask for it waits until
    the host has found some. Whoever is measured next finds it ready. The memory is touched in
    small pages and again in huge ones: which pages of the machine they are made of differs, and
    some loaders use these and some those. The rate is of the small ones.
    """
    if size == 0:
        return None
    start = time.perf_counter()
    memory = anonymous(size)
    numpy.frombuffer(memory, numpy.uint8)[::PAGE] = 1
    rate = size / (time.perf_counter() - start)
    memory.close()
    huge = anonymous(size)
    huge.madvise(mmap.MADV_HUGEPAGE)
    numpy.frombuffer(huge, numpy.uint8)[::PAGE] = 1
    huge.close()
    return rate
