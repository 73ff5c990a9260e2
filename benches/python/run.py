"""The Python package beside its peers: `python benches/python/run.py`, with the wheel and the peers installed.

Every measurement is a process of its own; contenders take turns. What is printed are ratios of medians: a peer's time
over ours. `cargo xtask bench python` makes the environment and calls this.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

#: What each comparison needs: the measurement, the set of files, our way and the peers'.
COMPARISONS = (
    ("owned", "big", "weigh", ("safetensors-pread", "safetensors-mmap-clone", "fastsafetensors", "runai", "weigh-load")),
    ("owned", "mid", "weigh", ("safetensors-pread", "safetensors-mmap-clone", "fastsafetensors", "runai", "weigh-load")),
    ("owned", "tiny", "weigh", ("safetensors-load-file", "safetensors-pread", "safetensors-mmap-clone", "weigh-load")),
    ("lazy", "mid", "weigh", ("safetensors",)),
    ("lazy", "tiny", "weigh", ("safetensors",)),
    ("list", "many", "weigh", ("safetensors", "weigh-drop-in")),
    ("ticker", "big", "weigh", ("native", "safetensors-pread")),
    ("import", None, "weigh", ("safetensors",)),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.5, help="sizes of the sets; 1 is 2 GB (default 0.5)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="one of the measurements: owned, lazy, list, ticker, import")
    parser.add_argument("--folder", type=Path, help="where the sets are made (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for what, name, ours, peers in COMPARISONS:
            if options.only in (None, what):
                files = make(Path(folder), name, options.scale)
                compare(what, name, ours, peers, files, options.rounds)


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
    found = {way: [] for way in (ours, *peers)}
    for _ in range(rounds):
        for way in found:
            for file in files:
                Path(file).read_bytes()
            found[way].append(measure(what, way, files))
    print(f"\n{what}{f', {name}' if name else ''}: medians of {rounds}, in turns")
    sums = {run["checksum"] for runs in found.values() for run in runs if run and run["checksum"] is not None}
    if len(sums) > 1:
        sys.exit(f"the answers differ: {sums}")
    mine = statistics.median(run["seconds"] for run in found[ours])
    for way, runs in found.items():
        runs = [run for run in runs if run]
        if not runs:
            print(f"  {way:24} failed")
            continue
        seconds = [run["seconds"] for run in runs]
        line = f"  {way:24} {statistics.median(seconds) / mine:6.2f}×   {statistics.median(seconds) * 1e3:9.1f} ms (fastest {min(seconds) * 1e3:.1f})"
        if "p99" in runs[0]:
            p99, most = (statistics.median(run[key] for run in runs) for key in ("p99", "most"))
            line += f"   gaps: p99 {p99 * 1e3:.2f} ms, most {most * 1e3:.2f} ms"
        print(line, flush=True)


def measure(what, way, files):
    environment = os.environ | {
        # What bypasses the page cache would be a cold read.
        "FASTSAFETENSORS_ODIRECT": "0",
        "RUNAI_STREAMER_FS_STRATEGY": "sync_buffered",
        "RUNAI_STREAMER_CONCURRENCY": "2",
    }
    command = [sys.executable, HERE / "worker.py", what, way, *files]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"  {way}: {(run.stderr.strip() or 'no output').splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
