"""Fig 9b of RTT-AQM's paper taken apart: python3 bench/goodputs.py

Reads what `suimon paper rtt-aqm` wrote. Goodput is what the link carried less what arrived twice, so one queue lies
above another by the time in which the other's link was idle, and by what arrived twice over the other's. For each cell:
the difference of goodputs and these two parts, in packets of the 400 s, and the largest difference that the other's
retransmissions allow where no link is idle.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

from measure import ROOT

SECONDS = 400
PAYLOAD_BITS = 8_000
PACKET_BITS = 8_320
RATE = 10e6
MODES = ("rtt-aqm", "rtt-aqm literal")
OTHERS = ("red", "ared", "rem", "shyu")


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open() as table:
        return [row for row in csv.DictReader(table) if row["scenario"] == "random-delay"]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "suimon-out" / "rtt-aqm"
    parser.add_argument("--results", type=Path, default=default, help="folder of the paper's run")
    options = parser.parse_args()
    if not (options.results / "runs.csv").exists():
        parser.error(
            f"--results: {options.results} has no runs.csv; suimon paper rtt-aqm --out {options.results} writes it"
        )
    # Packets of the run: delivered, retransmitted, carried.
    cells: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for row in rows(options.results, "runs.csv"):
        delivered = float(row["goodput_bps"]) * SECONDS / PAYLOAD_BITS
        carried = float(row["utilisation"]) * RATE * SECONDS / PACKET_BITS
        cells[row["queue"], row["L"]].append((delivered, float(row["retransmissions"]), carried))
    means = {cell: tuple(mean(list(column)) for column in zip(*runs, strict=True)) for cell, runs in cells.items()}
    spreads = list(dict.fromkeys(spread for _, spread in means))
    print("| mode | beside | L | difference | by idle time | by what arrived twice | at most |")
    print("|" + " --- |" * 7)
    for mode in MODES:
        for other in OTHERS:
            for spread in spreads:
                ours, theirs = means[mode, spread], means[other, spread]
                difference, _, carried = (a - b for a, b in zip(ours, theirs, strict=True))
                parts = f"{difference:+.1f} | {carried:+.1f} | {difference - carried:+.1f}"
                most = 100 * theirs[1] / theirs[0]
                print(f"| {mode} | {other} | {spread} | {parts} | {most:.4f} % |")


if __name__ == "__main__":
    main()
