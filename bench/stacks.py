"""TCP Reno without SACK beside ns-2's: python3 bench/stacks.py

30 flows in their first 20 s over one link, as in section 5.1 of RTT-AQM's paper, and single flows under random loss.
Goodput may differ by 3 %, the mean queue by 10 %, drops and retransmissions by 25 %; fails where one differs by more.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure import HERE, WORK, BenchError, run
from simulators import built

SEGMENT = 1000
PACKET = 1040
STARTS = {
    "red": "red:min_th=40kB:max_th=120kB:w_q=0:wait=true",
    "ared": "ared:min_th=40kB:max_th=120kB:wait=true",
    "rem": "rem:target=100kB:period=2ms",
    "droptail": "droptail",
}
LOSSES = ("0", "0.001", "0.004", "0.01")

SCENARIO = """
name = "stacks"
duration = "{seconds}s"
record_interval = "off"
seeds = {seeds}
[[window]]
name = "all"
[[link]]
name = "r1-r2"
between = ["r1", "r2"]
rate = "10Mbit"
delay = "10ms"
buffer = "{buffer}"
queue = "{queue}"
[link.reverse]
rate = "unlimited"
[[link]]
name = "senders"
between = ["s", "r1"]
rate = "100Mbit"
delay = "{access}ms"
buffer = "unbounded"
reported = false
[[link]]
name = "receivers"
between = ["r2", "d"]
rate = "100Mbit"
delay = "{access}ms"
buffer = "unbounded"
loss = "{loss}%"
reported = false
[link.reverse]
loss = "0%"
[[flow]]
name = "main"
from = "s"
to = "d"
count = {flows}
stagger = "100ms"
cc = "reno:window=fractions"
window = "{window}"
profile = "ns-2"
[flow.stack]
mss = "1000B"
header = "40B"
timestamps = false
rto_clock = "10ms"
counting = "per-ack"
delayed_ack = false
loss_detection = "duplicate-acks"
ecn = {ecn}
"""


@dataclass(frozen=True)
class Case:
    """What both are asked."""

    what: str
    kind: str

    def scenario(self, seeds: int) -> str:
        start = self.what == "start"
        return SCENARIO.format(
            seeds=seeds,
            seconds=20 if start else 120,
            buffer="150kB" if start else "50 packets",
            queue=STARTS[self.kind] if start else "droptail",
            access=2 if start else 10,
            loss=0 if start else 100 * float(self.kind),
            flows=30 if start else 1,
            window="20kB" if start else "10MB",
            ecn="true" if start else "false",
        )


@dataclass(frozen=True)
class Outcome:
    """Means over seeds."""

    goodput_mbps: float
    retransmissions: float
    drops: float
    queue_kb: float


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def of_ns2(case: Case, seeds: int) -> Outcome:
    command = ["ns", str(HERE / "ns2" / "stacks.tcl"), case.what, case.kind]
    with ThreadPoolExecutor() as pool:
        lines = list(pool.map(lambda seed: run([*command, str(seed)], "ns"), range(1, seeds + 1)))
    acked, again, drops, waiting = (
        mean(list(column)) for column in zip(*(map(float, line.split()) for line in lines), strict=True)
    )
    seconds = 20 if case.what == "start" else 120
    return Outcome(acked * SEGMENT * 8 / seconds / 1e6, again, drops, waiting * PACKET / 1e3)


def of_suimon(binary: Path, case: Case, seeds: int) -> Outcome:
    folder = WORK / "stacks"
    folder.mkdir(parents=True, exist_ok=True)
    scenario = WORK / "stacks.toml"
    scenario.write_text(case.scenario(seeds))
    run([str(binary), "run", str(scenario), "--out", str(folder), "--force"], "suimon")
    with (folder / "windows.csv").open() as table:
        rows = list(csv.DictReader(table))

    def column(name: str) -> float:
        return mean([float(row[name]) for row in rows])

    return Outcome(
        column("goodput_bps") / 1e6,
        column("retransmissions"),
        column("dropped_overflow") + column("dropped_early"),
        column("backlog_time_mean_bytes") / 1e3,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="seeds (default: 10)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    if not shutil.which("ns"):
        print("stacks: ns-2 is not installed; Debian's package is ns2", file=sys.stderr)
        return 1
    bounds = {"goodput_mbps": 0.03, "retransmissions": 0.25, "drops": 0.25, "queue_kb": 0.1}
    cases = [Case("start", kind) for kind in STARTS] + [Case("loss", share) for share in LOSSES]
    missed = 0
    for case in cases:
        ns2, ours = of_ns2(case, options.seeds), of_suimon(options.suimon, case, options.seeds)
        for name, bound in bounds.items():
            theirs, own = getattr(ns2, name), getattr(ours, name)
            apart = own / theirs - 1 if theirs else float(own != 0)
            holds = abs(apart) <= bound
            missed += not holds
            verdict = "" if holds else "MISS"
            print(f"{case.what} {case.kind:9}{name:16}{theirs:9.3f} {own:9.3f} {apart:+8.1%} {verdict}".rstrip())
    print(f"\nstacks: {missed} of {len(cases) * len(bounds)} beyond their bounds")
    return int(missed > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"stacks: {error}", file=sys.stderr)
        sys.exit(1)
