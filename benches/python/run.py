"""The Python package beside its peers: `python benches/python/run.py`, with the wheel and the peers installed.

Every measurement is a process of its own; contenders take turns. What is printed are ratios of medians, and of the
fastest: a peer's time over ours. `cargo xtask bench python` makes the environment and calls this.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

#: What each comparison needs: the measurement, the set of files, our way, and each peer with the ratio to be reached
#: (none: it is there to be looked at).
COMPARISONS = (
    (
        "owned",
        "big",
        "weigh",
        {"safetensors-pread": 2.5, "safetensors-mmap-clone": 2.5, "fastsafetensors": 2.5, "runai": 2.5, "weigh-load": None},
    ),
    (
        "owned",
        "mid",
        "weigh",
        {"safetensors-pread": 2.5, "safetensors-mmap-clone": 2.5, "fastsafetensors": 2.5, "runai": 2.5, "weigh-load": None},
    ),
    (
        "owned",
        "tiny",
        "weigh",
        {"safetensors-load-file": 3.0, "safetensors-pread": None, "safetensors-mmap-clone": None, "weigh-load": None},
    ),
    ("lazy", "mid", "weigh", {"safetensors": 1.0}),
    ("lazy", "tiny", "weigh", {"safetensors": 1.0}),
    ("list", "many", "weigh", {"safetensors": 5.0, "weigh-drop-in": None}),
    ("ticker", "big", "weigh", {"native": None, "safetensors-pread": None}),
    ("import", None, "weigh", {"safetensors": None}),
)

#: What the measurements that have no ratio are to keep to.
LIMITS = {
    "ticker": "to be reached: p99 at most 5 ms, most within 2 ms of native",
    "import": "to be reached: under 15 ms beyond the interpreter's start",
}

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.5, help="sizes of the sets; 1 is 2 GB (default 0.5)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="one of the measurements: owned, lazy, list, ticker, import")
    parser.add_argument("--folder", type=Path, help="where the sets are made (default: a temporary folder)")
    options = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for what, name, ours, peers in COMPARISONS:
            if options.only in (None, what):
                files = make(Path(folder), name, options.scale)
                failed += compare(what, name, ours, peers, files, options.rounds)
    if failed:
        sys.exit(f"\nfailed, and so not measured: {', '.join(failed)}")


def make(folder, name, scale):
    """The files of a set, made when they are first asked for. A set of another name is removed: there is one at a time."""
    if name is None:
        return []
    place = folder / name
    if not place.exists():
        for other in folder.iterdir():
            for file in other.iterdir():
                file.unlink()
            other.rmdir()
        place.mkdir()
        subprocess.run([sys.executable, HERE / "sets.py", place, name, str(scale)], check=True)
    return sorted(str(file) for file in place.iterdir())


def compare(what, name, ours, peers, files, rounds):
    """Prints the comparison, and returns those whose runs failed."""
    found = {way: [] for way in (ours, *peers)}
    for _ in range(rounds):
        for way in found:
            for file in files:
                Path(file).read_bytes()
            found[way].append(measure(what, way, files))
    title = f"{what}{f', {name}' if name else ''}"
    failed = [f"{title}: {way}" for way, runs in found.items() if None in runs]
    print(f"\n{title}, {rounds} rounds in turns: ratios of medians and of the fastest, the times of both")
    if what in LIMITS:
        print(f"  {LIMITS[what]}")
    sums = {run["checksum"] for runs in found.values() for run in runs if run and run["checksum"] is not None}
    if len(sums) > 1:
        sys.exit(f"the answers differ: {sums}")
    mine = [run["seconds"] for run in found[ours] if run]
    for way, runs in found.items():
        runs = [run for run in runs if run]
        if not runs:
            print(f"  {way:24} failed")
            continue
        seconds = [run["seconds"] for run in runs]
        ratio, fastest = (of(seconds) / of(mine) if mine else math.nan for of in (statistics.median, min))
        line = f"  {way:24} {ratio:6.2f}× {fastest:6.2f}×   {statistics.median(seconds) * 1e3:9.1f} ms {min(seconds) * 1e3:9.1f}"
        if target := peers.get(way):
            line += f"   {'reached' if ratio >= target else 'NOT REACHED'}: {target:.1f}×"
        if "p99" in runs[0]:
            p99, most = (statistics.median(run[key] for run in runs) for key in ("p99", "most"))
            line += f"   gaps: p99 {p99 * 1e3:.2f} ms, most {most * 1e3:.2f} ms"
        print(line, flush=True)
    return failed


def processors():
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def measure(what, way, files):
    environment = os.environ | {
        # What bypasses the page cache would be a cold read.
        "FASTSAFETENSORS_ODIRECT": "0",
        "RUNAI_STREAMER_FS_STRATEGY": "sync_buffered",
        "RUNAI_STREAMER_CONCURRENCY": str(processors()),
    }
    command = [sys.executable, HERE / "worker.py", what, way, *files]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"  {way}: {(run.stderr.strip() or 'no output').splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
