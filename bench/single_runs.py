"""How much one run of RTT-AQM's section 5 says: python3 bench/single_runs.py

Reads what `suimon paper rtt-aqm` wrote. The paper prints the values of one run each; this prints how much such a value
varies from seed to seed, where the mean over the seeds misses it.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import statistics
from pathlib import Path

from measure import ROOT


def values(folder: Path, column: str, **where: str) -> list[float]:
    """The column in the rows that have all of `where`, one for each seed."""
    with (folder / "windows.csv").open() as table:
        rows = csv.DictReader(table)
        return [float(row[column]) for row in rows if all(row[key] == value for key, value in where.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "suimon-out" / "rtt-aqm"
    parser.add_argument("--results", type=Path, default=default, help="folder of the paper's run")
    folder = parser.parse_args().results
    if not (folder / "windows.csv").exists():
        parser.error(f"--results: {folder} has no windows.csv; suimon paper rtt-aqm --out {folder} writes it")

    hops = {"scenario": "multi-hop", "link": "r3-r4", "window": "10-50s"}
    ours, red = (values(folder, "backlog_cov", queue=queue, **hops) for queue in ("rtt-aqm", "red"))
    print("Table 4: COV under RTT-AQM, smoothed, over that under RED")
    for name, covs in (("RTT-AQM", ours), ("RED", red)):
        print(f"  {name:8} {statistics.mean(covs):.4f}, from run to run ± {statistics.stdev(covs):.4f}")
    ratios = [own / other for own, other in itertools.product(ours, red)]
    for bound in (0.95, 1):
        share = sum(ratio <= bound for ratio in ratios) / len(ratios)
        print(f"  at most {100 * bound:3.0f} % in {100 * share:.0f} % of all pairs of one run each; printed: 95 %")

    single = {"scenario": "single-link", "link": "r1-r2", "window": "100-120s", "queue": "rtt-aqm literal"}
    tops = [top / 1e3 for top in values(folder, "backlog_max_bytes", **single)]
    print("Table 1: maximum of the queue from 100 to 120 s, RTT-AQM, literal")
    print(
        f"  {statistics.mean(tops):.1f} KB, from run to run ± {statistics.stdev(tops):.1f}, "
        f"{min(tops):.1f} to {max(tops):.1f}; printed: 127.9"
    )

    delayed = {"scenario": "random-delay", "link": "r1-r2", "window": "all", "queue": "rtt-aqm literal", "L": "40 ms"}
    again = values(folder, "retransmissions", **delayed)
    print("Fig 9a: retransmissions at L = 40 ms, RTT-AQM, literal")
    print(f"  none in {again.count(0)} of {len(again)} runs, {max(again):.0f} at most; printed: 0")


if __name__ == "__main__":
    main()
