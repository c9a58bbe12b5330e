"""CUBIC beside Compound, held to ns-2's Linux TCP: python3 bench/pair.py

Two flows share a link, over five paths and five buffers with tail drop and with RED, as in the DPD-QT paper but without
delayed ACKs. A host waits a random time of up to two packets' transmission times before it sends: else the phase in
which packets meet a full queue decides who loses (`--wait 0`). Prints the goodput of CUBIC over that of Compound from
20 to 80 s in ns-2 and in Suimon. `--write` puts the table into the paper's page.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure import HERE, ROOT, WORK, BenchError, run
from page import write_between
from simulators import built

PAGE = ROOT / "papers" / "dpd-qt" / "README.md"
# Mbit/s and round trip in ms.
PATHS = ((10, 40), (50, 20), (50, 100), (100, 20), (500, 4))
# What is left of slow start may take some of the first seconds.
WARMUP, SECONDS = 20, 80
PAYLOAD_BITS = 8 * 1448
# In bandwidth-delay products.
BUFFERS = (0.3, 0.75, 1.0, 1.5, 3.0)
QUEUES = {"DropTail": "droptail", "RED": "red:mode=packets:mean_packet=1500B:max_p=0.1:gentle=false"}
# A flow wins where it has more by a tenth; ratios are apart from a fifth on.
WINS, APART = 1.1, 1.2

SCENARIO = """
name = "pair"
duration = "{seconds}s"
warmup = "{warmup}s"
record_interval = "off"
seeds = {seeds}
[[link]]
name = "bottleneck"
between = ["router", "receiver"]
rate = "{rate}Mbit"
buffer = "{buffer} packets"
queue = "{queue}"
[link.reverse]
rate = "unlimited"
"""
SENDER = """
[[link]]
name = "{name}-access"
between = ["{name}", "router"]
rate = "1Gbit"
delay = "{delay}ms"
buffer = "unbounded"
jitter = "{jitter}us"
reported = false
[[flow]]
name = "{name}"
from = "{name}"
to = "receiver"
start = ["0s", "200ms"]
cc = "{cc}"
profile = "ns-2"
window = "100MB"
[flow.stack]
delayed_ack = false
"""


@dataclass(frozen=True)
class Cell:
    """A path with a buffer and a queue."""

    rate: int
    rtt: int
    product: float
    queue: str
    wait: float
    """Longest wait of a host, in packets' transmission times."""

    @property
    def packets(self) -> int:
        return round(self.product * self.rate * self.rtt * 1e3 / 8 / 1500)

    @property
    def jitter_us(self) -> int:
        return round(self.wait * 12_000 / self.rate)

    def scenario(self, seeds: int) -> str:
        text = SCENARIO.format(
            seconds=SECONDS,
            warmup=WARMUP,
            seeds=seeds,
            rate=self.rate,
            # ns-2's limit counts the packet that is being sent.
            buffer=self.packets - 1,
            queue=QUEUES[self.queue],
        )
        for name, cc in (("cubic", "cubic-2.1"), ("compound", "compound")):
            text += SENDER.format(name=name, delay=self.rtt / 2, jitter=self.jitter_us, cc=cc)
        return text


@dataclass(frozen=True)
class Outcome:
    """Of one cell, over its seeds."""

    ratio: float
    """Geometric mean of the goodput of CUBIC over that of Compound."""
    total_mbps: float

    @property
    def winner(self) -> int:
        return (self.ratio > WINS) - (self.ratio < 1 / WINS)


def outcome(pairs: list[tuple[float, float]]) -> Outcome:
    """From the goodputs of CUBIC and of Compound in bit/s, one pair for each seed."""
    ratio = statistics.geometric_mean([cubic / compound for cubic, compound in pairs])
    return Outcome(ratio, statistics.mean(sum(pair) for pair in pairs) / 1e6)


def of_ns2(cell: Cell, seeds: int) -> Outcome:
    settings = [str(one) for one in (cell.rate, cell.rtt, cell.packets, cell.queue, cell.jitter_us, WARMUP, SECONDS)]
    command = ["ns", str(HERE / "ns2" / "pair.tcl"), *settings]
    with ThreadPoolExecutor() as pool:
        outputs = pool.map(lambda seed: run([*command, str(seed)], "ns"), range(1, seeds + 1))
        # ns-2's Linux TCP tells its algorithm in lines of its own.
        packets = [output.splitlines()[:2] for output in outputs]
    scale = PAYLOAD_BITS / (SECONDS - WARMUP)
    return outcome([(int(cubic) * scale, int(compound) * scale) for cubic, compound in packets])


def of_suimon(binary: Path, cell: Cell, seeds: int) -> Outcome:
    folder = WORK / "pair"
    folder.mkdir(parents=True, exist_ok=True)
    scenario = WORK / "pair.toml"
    scenario.write_text(cell.scenario(seeds))
    run([str(binary), "run", str(scenario), "--out", str(folder), "--force"], "suimon")
    goodputs: dict[str, list[float]] = {"cubic": [], "compound": []}
    with (folder / "flows.csv").open() as table:
        for row in csv.DictReader(table):
            goodputs[row["flow"]].append(float(row["goodput_bps"]))
    return outcome(list(zip(goodputs["cubic"], goodputs["compound"], strict=True)))


def row(path: tuple[int, int], queue: str, product: float, ns2: Outcome, ours: Outcome) -> str:
    apart = ours.ratio / ns2.ratio - 1
    return (
        f"| {path[0]} Mbit/s, {path[1]} ms | {queue} | {product:g} | {ns2.ratio:.2f} | {ours.ratio:.2f} | {apart:+.0%} "
        f"| {ns2.total_mbps:.1f} | {ours.total_mbps:.1f} |"
    )


def summary(results: list[tuple[Outcome, Outcome]]) -> str:
    apart = sum(abs(math.log(ours.ratio / ns2.ratio)) > math.log(APART) for ns2, ours in results)
    won = [(ns2, ours) for ns2, ours in results if ns2.winner]
    same = sum(ns2.winner == ours.winner for ns2, ours in won)
    other = sum(ns2.winner == -ours.winner for ns2, ours in won)
    return (
        f"The ratios are apart by more than 20 % in {apart} of {len(results)} cells. Where a flow of ns-2 has more by\n"
        f"a tenth, the same flow has so here in {same} of {len(won)} cells, and the other one in {other}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds (default: 3)")
    wait = "longest wait before sending, in packets' transmission times (default: 2)"
    parser.add_argument("--wait", type=float, default=2.0, metavar="N", help=wait)
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help="put the table into the paper's page")
    options = parser.parse_args()
    if not shutil.which("ns"):
        print("pair: ns-2 is not installed; Debian's package is ns2", file=sys.stderr)
        return 1
    lines = ["| path | queue | buffer, BDP | ratio, ns-2 | suimon | | Mbit/s, ns-2 | suimon |", "|" + " --- |" * 8]
    results: list[tuple[Outcome, Outcome]] = []
    for path in PATHS:
        for queue in QUEUES:
            for product in BUFFERS:
                cell = Cell(*path, product, queue, options.wait)
                results.append((of_ns2(cell, options.seeds), of_suimon(options.suimon, cell, options.seeds)))
                lines.append(row(path, queue, product, *results[-1]))
                print(lines[-1], flush=True)
    print("\n" + summary(results))
    if options.write:
        write_between(PAGE, "pairs", "\n".join([*lines, "", summary(results)]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"pair: {error}", file=sys.stderr)
        sys.exit(1)
