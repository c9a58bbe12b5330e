"""How much one run of RTT-AQM's section 5 says: python3 bench/single_runs.py

Reads what `suimon paper rtt-aqm` wrote. The paper prints the values of one run each. Where the mean over the seeds
misses such a value, this prints how it varies from seed to seed, and in how many single runs the claim holds, with the
exact 95 % interval of this probability (Clopper and Pearson).
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from pathlib import Path

from measure import ROOT


def values(folder: Path, column: str, **where: str) -> list[float]:
    """The column in the rows that have all of `where`, one for each seed."""
    with (folder / "windows.csv").open() as table:
        rows = csv.DictReader(table)
        return [float(row[column]) for row in rows if all(row[key] == value for key, value in where.items())]


def at_least(successes: int, trials: int, probability: float) -> float:
    """Probability of so many successes or more."""
    terms = (
        math.comb(trials, n) * probability**n * (1 - probability) ** (trials - n) for n in range(successes, trials + 1)
    )
    return sum(terms)


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The probabilities for which neither so many successes nor so few have a probability below 2.5 %."""

    def limit(count: int, chance: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_least(count, trials, middle) < chance else (low, middle)
        return low

    low = limit(successes, 0.025) if successes else 0.0
    high = limit(successes + 1, 0.975) if successes < trials else 1.0
    return low, high


def say(what: str, holds: list[bool]) -> None:
    """In how many single runs the claim holds."""
    low, high = interval(sum(holds), len(holds))
    print(f"  {what} in {sum(holds)} of {len(holds)} runs: {100 * low:.0f} to {100 * high:.0f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "suimon-out" / "rtt-aqm"
    parser.add_argument("--results", type=Path, default=default, help="folder of the paper's run")
    folder = parser.parse_args().results
    if not (folder / "windows.csv").exists():
        parser.error(f"--results: {folder} has no windows.csv; suimon paper rtt-aqm --out {folder} writes it")

    hops = {"scenario": "multi-hop", "link": "r3-r4", "window": "10-50s"}
    ours, red = (values(folder, "backlog_cov", queue=queue, **hops) for queue in ("rtt-aqm", "red"))
    print("Table 4: COV under RTT-AQM, smoothed, over that under RED, with the same seed; printed: 95 %")
    for name, covs in (("RTT-AQM", ours), ("RED", red)):
        print(f"  {name:8} {statistics.mean(covs):.4f}, from run to run ± {statistics.stdev(covs):.4f}")
    ratios = [own / other for own, other in zip(ours, red, strict=True)]
    for bound in (0.95, 1):
        say(f"at most {100 * bound:3.0f} %", [ratio <= bound for ratio in ratios])

    single = {"scenario": "single-link", "link": "r1-r2", "window": "100-120s"}
    tops = [top / 1e3 for top in values(folder, "backlog_max_bytes", queue="rtt-aqm literal", **single)]
    print("Table 1: maximum of the queue from 100 to 120 s, RTT-AQM, literal; printed: 127.9 KB, judged within 6")
    print(
        f"  {statistics.mean(tops):.1f} KB, from run to run ± {statistics.stdev(tops):.1f}, "
        f"{min(tops):.1f} to {max(tops):.1f}"
    )
    say("within 6 KB", [abs(top - 127.9) <= 6 for top in tops])

    ared = [top / 1e3 for top in values(folder, "backlog_max_bytes", queue="ared", **single)]
    dropped = values(folder, "dropped_overflow", queue="ared", **single)
    print("Section 5.1: Adaptive RED from 100 to 120 s; the paper: overflows")
    print(f"  maximum {statistics.mean(ared):.1f} KB, {min(ared):.1f} to {max(ared):.1f}, of 150 KB")
    say("overflows", [drops > 0 for drops in dropped])

    delayed = {"scenario": "random-delay", "link": "r1-r2", "window": "all", "queue": "rtt-aqm literal", "L": "40 ms"}
    again = values(folder, "retransmissions", **delayed)
    print("Fig 9a: retransmissions at L = 40 ms, RTT-AQM, literal; printed: 0")
    say("none", [count == 0 for count in again])
    print(f"  {max(again):.0f} at most")


if __name__ == "__main__":
    main()
