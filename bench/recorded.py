#!/usr/bin/env python3
"""A recording of a line that varies beside the trace that the line played: `suimon measure record` over `suimon shell`.

    python3 bench/recorded.py                                  # three synthetic cells, in virtual time
    python3 bench/recorded.py --trace a.down b.down --live     # traces in Mahimahi's format, in real time

The line plays the trace over and over; a recording began at the shift at which both are most alike."""

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from measure import ROOT, BenchError, run
from page import write_between
from simulators import built

WORK = ROOT / "suimon-out" / "recorded"
PAGE = ROOT / "docs" / "guides" / "measure.md"
CELLS = ["lte-driving", "lte-walking", "3g-driving"]
OPPORTUNITY_BITS = 12_000
# The step of a shift, and the windows over which rates are compared, in milliseconds.
STEP = 10
WINDOWS = [100, 1000]
LIMIT_S = 1500


@dataclass(frozen=True)
class Found:
    """A recording beside what was played."""

    name: str
    length_s: float
    mean_mbps: tuple[float, float]
    # The mean difference of rates over windows, and what half of them do not exceed, in percent of the mean rate.
    off: dict[int, float]
    correlation: float
    filled: str


def bins(times: list[int], length_ms: int) -> list[int]:
    counts = [0] * (length_ms // STEP)
    for time in times:
        if (at := max(time - 1, 0) // STEP) < len(counts):
            counts[at] += 1
    return counts


def windows(counts: list[int], window_ms: int) -> list[float]:
    width = window_ms // STEP
    return [
        sum(counts[at : at + width]) * OPPORTUNITY_BITS / window_ms / 1e3
        for at in range(0, len(counts) - width + 1, width)
    ]


def correlation(one: list[float], two: list[float]) -> float:
    mean_one, mean_two = sum(one) / len(one), sum(two) / len(two)
    both = sum((a - mean_one) * (b - mean_two) for a, b in zip(one, two, strict=True))
    own = sum((a - mean_one) ** 2 for a in one) * sum((b - mean_two) ** 2 for b in two)
    return both / own**0.5 if own else 0.0


def beside(name: str, played: list[int], recorded: list[int], filled: str) -> Found:
    length = recorded[-1] // 1000 * 1000
    own = bins(recorded, length)
    period = played[-1]
    laps = length // period + 2
    endless = bins([time + lap * period for lap in range(laps) for time in played], laps * period)

    def shifted(shift: int) -> list[int]:
        return endless[shift : shift + len(own)]

    # First in steps of 100 ms, then of 10 ms around the best.
    coarse = windows(own, 100)
    steps = range(0, period // STEP, 10)
    rough = max(steps, key=lambda shift: correlation(coarse, windows(shifted(shift), 100)))
    near = [shift % (period // STEP) for shift in range(rough - 10, rough + 11)]
    best = max(near, key=lambda shift: correlation(coarse, windows(shifted(shift), 100)))
    pairs = {window: (windows(own, window), windows(shifted(best), window)) for window in WINDOWS}
    ours, theirs = pairs[1000]
    mean = sum(theirs) / len(theirs)
    off = {}
    for window, pair in pairs.items():
        apart = sum(abs(a - b) for a, b in zip(*pair, strict=True)) / len(pair[0])
        off[window] = 100 * apart / mean
    return Found(name, length / 1e3, (sum(ours) / len(ours), mean), off, correlation(*pairs[100]), filled)


def times(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


def recorded(name: str, trace: Path, suimon: Path, length: str, in_lab: bool) -> Found:
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    played = folder / "played"
    played.write_text(trace.read_text())
    for old in folder.glob("got.*"):
        old.unlink()
    program = "suimon" if in_lab else str(suimon)
    shell = [program, "shell", "--quiet", "--down", "played 40ms 2MB", "--up", "10Mbit 40ms 200kB"]
    shell += ["--server", f"{program} measure --serve --log warn", "--"]
    client = f"sleep 1; {program} measure record far --out got --length {length} --only download > said"
    (folder / "run.sh").write_text(shlex.join([*shell, "sh", "-c", client]) + "\n")
    command = [str(suimon), "lab", "--"] if in_lab else []
    done = subprocess.run(
        [*command, "sh", "run.sh"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if not (folder / "got.down").exists():
        raise BenchError(f"{name}: no recording: {done.stdout[-300:]}{done.stderr[-500:]}")
    said = (folder / "said").read_text().strip().partition("; ")[2]
    return beside(name, times(played), times(folder / "got.down"), said)


def table(found: list[Found]) -> str:
    lines = [
        "| Trace | Recorded, s | Mean rate, Mbit/s | Rates over 1 s differ by | over 0.1 s | Correlation over 0.1 s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {one.length_s:.0f} | {one.mean_mbps[0]:.3f} / {one.mean_mbps[1]:.3f} "
        f"| {one.off[1000]:.1f} % | {one.off[100]:.1f} % | {one.correlation:.3f} |"
        for one in found
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--trace", type=Path, nargs="+", help="files in Mahimahi's format instead of synthetic cells")
    parser.add_argument("--length", default="60s", help="of each recording")
    parser.add_argument("--live", action="store_true", help="in real time on this machine")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    traces = {trace.name: trace for trace in options.trace or []}
    if not traces:
        WORK.mkdir(parents=True, exist_ok=True)
        for cell in CELLS:
            traces[cell] = WORK / f"{cell}.trace"
            traces[cell].write_text(run([str(suimon), "trace", "generate", "--like", cell, "--seed", "7"], "suimon"))
    found = []
    for name, trace in traces.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        found.append(recorded(name, trace, suimon, options.length, not options.live))
        print(f"{name}: {found[-1].filled}", file=sys.stderr, flush=True)
    text = table(found)
    print(text)
    if options.write:
        write_between(PAGE, "recordings", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
