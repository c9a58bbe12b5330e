"""TCP senders beside ns-2's: python3 bench/stacks.py

Reno without SACK: 30 flows in their first 20 s over one link, as in section 5.1 of RTT-AQM's paper, and single flows
under random loss, for 1200 s. Vegas with delayed ACKs under random loss, and CUBIC alone over 50 Mbit/s and 100 ms,
also with random waits before it sends, against ns-2's Linux TCP. Goodput may differ by 3 %, the mean queue by 10 %,
drops and retransmissions by 25 %; fails where one differs by more. `--only vegas` runs one kind.
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

STARTS = {
    "red": "red:min_th=40kB:max_th=120kB:w_q=0:wait=true",
    "ared": "ared:min_th=40kB:max_th=120kB:wait=true",
    "rem": "rem:target=100kB:period=2ms",
    "droptail": "droptail",
}
LOSSES = ("0", "0.001", "0.004", "0.01")
# Packets of the buffer: a quarter and a half of the bandwidth-delay product.
BUFFERS = ("104", "208")

RENO = """
cc = "reno:window=fractions"
profile = "ns-2"
[flow.stack]
mss = "1000B"
header = "40B"
timestamps = false
rto_clock = "10ms"
counting = "per-ack"
delayed_ack = false
loss_detection = "duplicate-acks"
"""

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
rate = "{rate}"
delay = "{middle}ms"
buffer = "{buffer}"
queue = "{queue}"
[link.reverse]
rate = "unlimited"
[[link]]
name = "senders"
between = ["s", "r1"]
rate = "100Mbit"
delay = "{access}ms"
jitter = "{wait}us"
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
window = "{window}"
{sender}
"""


@dataclass(frozen=True)
class Case:
    """What both are asked."""

    what: str
    kind: str

    @property
    def seconds(self) -> int:
        return {"start": 20, "loss": 1200, "vegas": 1200, "cubic": 120, "waits": 120}[self.what]

    @property
    def packet(self) -> int:
        """Size of a full packet in bytes."""
        return 1500 if self.what in ("vegas", "cubic", "waits") else 1040

    def seeds(self, seeds: int) -> int:
        """One where nothing is drawn."""
        return 1 if self.what == "cubic" else seeds

    def scenario(self, seeds: int) -> str:
        settings: dict[str, object] = {
            "seeds": seeds,
            "seconds": self.seconds,
            "rate": "10Mbit",
            "middle": 10,
            "access": 10,
            "wait": 0,
            "buffer": "50 packets",
            "queue": "droptail",
            "loss": 0,
            "flows": 1,
            "window": "100MB",
            "sender": RENO,
        }
        if self.what == "start":
            settings |= {"access": 2, "buffer": "150kB", "queue": STARTS[self.kind], "flows": 30, "window": "20kB"}
            settings["sender"] = RENO + "ecn = true"
        elif self.what in ("cubic", "waits"):
            # ns-2's limit counts the packet that is being sent.
            settings |= {"rate": "50Mbit", "middle": 48, "access": 1, "buffer": f"{int(self.kind) - 1} packets"}
            settings["sender"] = 'cc = "cubic-2.1"\nprofile = "ns-2"\n[flow.stack]\ndelayed_ack = false'
            if self.what == "waits":
                # Two packets' transmission times.
                settings["wait"] = 480
        else:
            settings["loss"] = 100 * float(self.kind)
            if self.what == "vegas":
                # The thresholds that ns-2's Linux TCP has by default; those of Linux 2.6.16 are 1 and 3.
                settings["sender"] = 'cc = "vegas:alpha=2:beta=4"\nprofile = "ns-2"'
        return SCENARIO.format(**settings)


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
        outputs = pool.map(lambda seed: run([*command, str(seed)], "ns"), range(1, seeds + 1))
        # ns-2's Linux TCP tells its algorithm in lines of its own.
        lines = [output.splitlines()[0] for output in outputs]
    acked, again, drops, waiting = (
        mean(list(column)) for column in zip(*(map(float, line.split()) for line in lines), strict=True)
    )
    return Outcome(acked * 8 / case.seconds / 1e6, again, drops, waiting * case.packet / 1e3)


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
    parser.add_argument("--only", choices=("start", "loss", "vegas", "cubic", "waits"), help="one kind of case")
    options = parser.parse_args()
    if not shutil.which("ns"):
        print("stacks: ns-2 is not installed; Debian's package is ns2", file=sys.stderr)
        return 1
    bounds = {"goodput_mbps": 0.03, "retransmissions": 0.25, "drops": 0.25, "queue_kb": 0.1}
    kinds = {"start": tuple(STARTS), "loss": LOSSES, "vegas": LOSSES[1:], "cubic": BUFFERS, "waits": BUFFERS[1:]}
    cases = [Case(what, kind) for what in kinds if options.only in (None, what) for kind in kinds[what]]
    missed = 0
    for case in cases:
        seeds = case.seeds(options.seeds)
        ns2, ours = of_ns2(case, seeds), of_suimon(options.suimon, case, seeds)
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
