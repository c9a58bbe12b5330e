"""Where Adaptive RED overflows in section 5.1 of RTT-AQM's paper: python3 bench/arrivals.py

Runs papers/rtt-aqm/single-link.toml, whose 20 flows after 100 s come 0.1 s apart, with other times between them, and
with Adaptive RED's max_p bounded at 0.1; beside it Adaptive RED of ns-2.35. Prints the packets that overflow between
100 and 120 s, and the extremes of RTT-AQM's queue, which Table 1 has.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import statistics
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import HERE, ROOT, WORK, BenchError, run
from simulators import built

SCENARIO = ROOT / "papers" / "rtt-aqm" / "single-link.toml"
# Seconds between two of the flows.
PACES = (0.1, 0.07, 0.05, 0.02, 0.0)
ARED = "ared:min_th=40kB:max_th=120kB:wait=true"
QUEUES = {
    "ared": ARED,
    "ared, top=0.1": f"{ARED}:top=0.1",
    "shyu": "shyu:min_th=40kB",
    "rtt-aqm": "rtt-aqm:target=100kB",
    "rtt-aqm literal": "rtt-aqm:target=100kB:mode=literal:rate=average:window=20ms:increase=per-rtt",
}
# Those of Table 1.
TRANSIENTS = ("100-120s", "200-220s")


def of_ns2(pace: float, seeds: int) -> list[int]:
    """Packets that Adaptive RED drops between 100 and 120 s, where it marks at every probability, for each seed."""

    def one(seed: int) -> int:
        lines = run(["ns", str(HERE / "ns2" / "queues.tcl"), "ared", str(seed), str(pace)], "ns").splitlines()
        return sum(line.startswith("d") and 100 <= float(line.split(" ", 2)[1]) < 120 for line in lines)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(one, range(1, seeds + 1)))


def of_suimon(binary: Path, pace: float, seeds: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    """The rows of all seeds by queue and window."""
    folder = WORK / "arrivals"
    folder.mkdir(parents=True, exist_ok=True)
    scenario = WORK / "arrivals.toml"
    text = SCENARIO.read_text().split("[[matrix]]")[0]
    values, labels = (", ".join(f'"{one}"' for one in names) for names in (QUEUES.values(), QUEUES))
    matrix = f'[[matrix]]\nname = "queue"\nset = "link.r1-r2.queue"\nvalues = [{values}]\nlabels = [{labels}]\n'
    scenario.write_text(text + matrix)
    settings = ["--set", f"flow.more.stagger={round(pace * 1e3)}ms", "--set", f"seeds={seeds}"]
    run([str(binary), "run", str(scenario), *settings, "--out", str(folder), "--force"], "suimon")
    columns = ("dropped_overflow", "backlog_max_bytes", "backlog_min_bytes", "backlog_cov", "backlog_mean_bytes")
    rows = defaultdict(list)
    with (folder / "windows.csv").open() as table:
        for row in csv.DictReader(table):
            rows[row["queue"], row["window"]].append({name: float(row[name]) for name in columns})
    return rows


def mean(rows: list[dict[str, float]], column: str) -> float:
    return statistics.mean(row[column] for row in rows)


def overflows(packets: list[float]) -> str:
    return f"{statistics.mean(packets):.0f} in {sum(count > 0 for count in packets)} of {len(packets)}"


def extremes(rows: dict[tuple[str, str], list[dict[str, float]]], queue: str) -> str:
    """Maximum and minimum in KB in both windows."""
    columns = ("backlog_max_bytes", "backlog_min_bytes")
    return ", ".join(f"{mean(rows[queue, window], column) / 1e3:.1f}" for window in TRANSIENTS for column in columns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="seeds (default: 20)")
    parser.add_argument("--ns2-seeds", type=int, default=3, metavar="N", help="seeds for ns-2 (default: 3)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    if not shutil.which("ns"):
        print("arrivals: ns-2 is not installed; Debian's package is ns2", file=sys.stderr)
        return 1
    print("| flows come | ARED, ns-2 | ARED | Shyu-AQM | RTT-AQM | its extremes in KB | literal | its extremes |")
    print("|" + " --- |" * 8)
    for pace in PACES:
        rows = of_suimon(options.suimon, pace, options.seeds)
        ns2 = overflows([float(count) for count in of_ns2(pace, options.ns2_seeds)])
        cells = [f"{1e3 * pace:.0f} ms apart" if pace else "at once", ns2]
        for queue in ("ared", "shyu", "rtt-aqm", "rtt-aqm literal"):
            cells.append(overflows([row["dropped_overflow"] for row in rows[queue, "100-120s"]]))
            if queue.startswith("rtt-aqm"):
                cells.append(extremes(rows, queue))
        print("| " + " | ".join(cells) + " |", flush=True)
        if pace == PACES[0]:
            bounded = rows
    dropped = overflows([row["dropped_overflow"] for row in bounded["ared, top=0.1", "100-120s"]])
    print(f"\nmax_p at most 0.1, {1e3 * PACES[0]:.0f} ms apart: {dropped} runs overflow")
    for window in ("20-100s", "120-200s", "220-300s"):
        found = bounded["ared, top=0.1", window]
        print(f"  {window}: {mean(found, 'backlog_mean_bytes') / 1e3:.1f} KB, COV {mean(found, 'backlog_cov'):.3f}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"arrivals: {error}", file=sys.stderr)
        sys.exit(1)
