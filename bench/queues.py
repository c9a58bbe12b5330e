"""RED, Adaptive RED and REM beside ns-2's, on section 5.1 of RTT-AQM's paper: python3 bench/queues.py

Runs papers/rtt-aqm/single-link.toml with Suimon and bench/ns2/queues.tcl with ns-2.35, and prints the mean
queue and its coefficient of variation, both over what waits whenever a packet joins or leaves. Fails where
the two are more than 15 % apart.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure import HERE, ROOT, WORK, BenchError, run
from page import write_between
from simulators import built

SCENARIO = ROOT / "papers" / "rtt-aqm" / "single-link.toml"
PAGE = ROOT / "papers" / "rtt-aqm" / "README.md"
KINDS = ("red", "ared", "rem")
WINDOWS = ((20, 100), (120, 200), (220, 300))
BOUND = 0.15


@dataclass(frozen=True)
class Queue:
    """What waited in one window."""

    mean_kb: float
    cov: float


def mean_of(queues: list[Queue]) -> Queue:
    count = len(queues)
    return Queue(sum(one.mean_kb for one in queues) / count, sum(one.cov for one in queues) / count)


def of_ns2(kind: str, seed: int) -> list[Queue]:
    """The queue in each window of one run."""
    command = ["ns", str(HERE / "ns2" / "queues.tcl"), kind, str(seed)]
    sums = [[0, 0, 0] for _ in WINDOWS]
    waiting = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            event, time, _, _, _, size, _ = line.split(" ", 6)
            if event == "r":
                continue
            # A packet that is dropped was told of as joining before.
            waiting += int(size) if event == "+" else -int(size)
            if event == "d":
                continue
            for window, (begin, end) in zip(sums, WINDOWS, strict=True):
                if begin <= float(time) < end:
                    window[0] += 1
                    window[1] += waiting
                    window[2] += waiting * waiting
        error = process.stderr.read()
    if process.returncode != 0:
        raise BenchError(f"ns {kind}: exit code {process.returncode}: {error.strip()[-500:]}")
    means = [(total / count, squares / count) for count, total, squares in sums]
    return [Queue(mean / 1e3, math.sqrt(square - mean * mean) / mean) for mean, square in means]


def of_suimon(binary: Path) -> dict[tuple[str, str], list[Queue]]:
    """The queues of all seeds by discipline and window."""
    folder = WORK / "queues"
    run([str(binary), "run", str(SCENARIO), "--out", str(folder), "--force"], "suimon")
    queues = defaultdict(list)
    with (folder / "windows.csv").open() as table:
        for row in csv.DictReader(table):
            queue = Queue(float(row["backlog_mean_bytes"]) / 1e3, float(row["backlog_cov"]))
            queues[row["queue"], row["window"]].append(queue)
    return queues


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds for ns-2 (default: 5)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help="put the table into the paper's page")
    options = parser.parse_args()
    if not shutil.which("ns"):
        print("queues: ns-2 is not installed; Debian's package is ns2", file=sys.stderr)
        return 1
    runs = [(kind, seed) for kind in KINDS for seed in range(1, options.seeds + 1)]
    with ThreadPoolExecutor() as pool:
        by_run = dict(zip(runs, pool.map(lambda one: of_ns2(*one), runs), strict=True))
    suimon = of_suimon(options.suimon)
    lines = ["| | window | mean queue, ns-2 | suimon | | COV, ns-2 | suimon | |", "|" + " --- |" * 8]
    worst = 0.0
    for kind in KINDS:
        for position, (begin, end) in enumerate(WINDOWS):
            ns2 = mean_of([by_run[kind, seed][position] for seed in range(1, options.seeds + 1)])
            ours = mean_of(suimon[kind, f"{begin}-{end}s"])
            means, covs = ours.mean_kb / ns2.mean_kb - 1, ours.cov / ns2.cov - 1
            worst = max(worst, abs(means), abs(covs))
            lines.append(
                f"| {kind} | {begin}-{end} s | {ns2.mean_kb:.1f} KB | {ours.mean_kb:.1f} KB | {means:+.1%} "
                f"| {ns2.cov:.3f} | {ours.cov:.3f} | {covs:+.1%} |"
            )
    table = "\n".join(lines)
    print(table)
    verdict = "pass" if worst <= BOUND else "MISS"
    print(f"\nqueues: {worst:.1%} apart at most, {BOUND:.0%} allowed: {verdict}")
    if options.write:
        write_between(PAGE, "results", table)
    return int(worst > BOUND)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"queues: {error}", file=sys.stderr)
        sys.exit(1)
