"""Measures what a second core is worth to a sweep: python3 bench/sweep.py [--jobs N] [--rounds N]

Runs the same sweep on one core and on several in turn, so that whatever else the machine does meets both, and
checks that they write the same bytes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulators import built

SCENARIO = """
duration = "20s"
seeds = 240
[[link]]
name = "bottleneck"
between = ["a", "b"]
rate = "10Mbit"
delay = "14ms"
buffer = "150kB"
[[flow]]
name = "main"
from = "a"
to = "b"
count = 10
start = ["0s", "1s"]
[[matrix]]
set = "link.bottleneck.queue"
values = ["droptail", "red"]
[[matrix]]
set = "flow.main.cc"
values = ["reno", "cubic", "vegas", "fs-at"]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to measure")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cores to compare with one")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "sweep.toml")
        scenario.write_text(SCENARIO)
        for _ in range(options.rounds):
            one, several = (_run(options.suimon, scenario, jobs) for jobs in (1, options.jobs))
            if one[2] != several[2]:
                print("sweep: one core and several gave different bytes", file=sys.stderr)
                return 1
            pairs.append((one, several))
            print(f"sweep: {one[0]:.2f} s on 1 core, {several[0]:.2f} s on {options.jobs}", file=sys.stderr)
    speedup = statistics.median(one[0] / several[0] for one, several in pairs)
    work = statistics.median(several[1] / one[1] for one, several in pairs)
    print(f"sweep: {options.jobs} cores are worth {speedup:.2f}, for {work:.2f} times the CPU time of one")
    return 0


def _run(suimon: Path, scenario: Path, jobs: int) -> tuple[float, float, dict[str, bytes]]:
    """Wall and CPU seconds of the sweep, and what it wrote."""
    with tempfile.TemporaryDirectory() as out:
        before = os.times()
        began = time.perf_counter()
        command = [str(suimon), "sweep", str(scenario), "--jobs", str(jobs), "--out", out]
        everywhere = os.sched_getaffinity(0)
        # On no other cores either: what writes the files runs beside what simulates.
        os.sched_setaffinity(0, sorted(everywhere)[:jobs])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        os.sched_setaffinity(0, everywhere)
        wall = time.perf_counter() - began
        after = os.times()
        cpu = sum(after[2:4]) - sum(before[2:4])
        files = {
            str(path.relative_to(out)): path.read_bytes() for path in Path(out).rglob("*") if path.is_file()
        }
        return wall, cpu, files


if __name__ == "__main__":
    sys.exit(main())
