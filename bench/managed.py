"""What `fs-at-open` does under managed queues: python3 bench/managed.py [--only TEXT] [--seeds N]

Prints the tables of its page (docs/fs-at-open-measured.md, managed queues). All runs are without ECN, with buffers of
1000 packets. Every core takes a network at a time, and the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from pathlib import Path
from statistics import fmean

from measure import BenchError
from open import OPEN, Cell, Outcome, has_its_share, outcome, wire
from simulators import built

LOSSES = (0.0, 0.3)
RIVALS = ("cubic", "reno")
# Mbit/s and milliseconds. The networks of UNEQUAL took part in no choice, those of MIXED in one, of SCANNED in several.
MIXED = ((15, 70), (40, 120), (80, 25), (7, 130))
UNEQUAL = ((9, 110), (12, 35), (30, 90), (55, 60))
SCANNED = ((4, 250), (6, 180), (8, 150), (3, 100), (2, 60), (25, 90), (60, 40), (100, 20))


@dataclass(frozen=True)
class Shared:
    """What the flows of a cell have of a fair share, what the others keep beside them, and what all use of the link."""

    own: float
    keep: float
    use: float


@dataclass(frozen=True)
class Network:
    """Flows of a sender beside flows of a rival, through one managed queue."""

    queue: str
    rate: int
    rtt: int
    loss: float
    own: int
    others: int = 0
    rival: str = "cubic"

    def cell(self) -> Cell:
        link = wire(self.rate, self.rtt, more=f'queue = "{self.queue}"\nloss = "{self.loss}%"')
        start, seconds = ('["0s", "2s"]', 90) if self.others else ('"0s"', 60)
        return Cell(str(self), "", has_its_share, link, self.others, self.rival, [start] * self.own, seconds)


class Bench:
    def __init__(self, suimon: Path, seeds: int) -> None:
        self.suimon, self.seeds = suimon, seeds
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def outcome(self, network: Network, sender: str) -> Outcome:
        return outcome(self.suimon, network.cell(), sender, self.seeds)

    def shared(self, network: Network) -> Shared:
        """Beside as many of their own kind the others would keep all."""
        here, rivals = self.outcome(network, OPEN), self.outcome(network, network.rival)
        keep = sum(here.others) / sum(rivals.others)
        return Shared(here.share, keep, (sum(here.own) + sum(here.others)) / network.rate)


def mean_and_least(values: list[float]) -> str:
    return f"{fmean(values):.2f} ({min(values):.2f})"


def table(*columns: str) -> None:
    row(*columns)
    row(*["---"] * len(columns))


def row(*cells: str) -> None:
    print("|", " | ".join(cells), "|", flush=True)


def alone(bench: Bench) -> None:
    """Goodput of one flow and of two as a part of the rate, of which headers take 0.035: mean and least, and delay."""
    senders = (OPEN, "cubic", "bbr")
    table("alone under, loss", *senders)
    for queue, loss in product(("codel", "fq-codel", "pie", "dualpi2"), (0.3, 2.0)):
        networks = [Network(queue, *path, loss, own) for path, own in product(MIXED, (1, 2))]
        said = []
        for sender in senders:
            found = list(bench.pool.map(bench.outcome, networks, repeat(sender)))
            used = [sum(each.own) / network.rate for each, network in zip(found, networks, strict=True)]
            said.append(f"{mean_and_least(used)}, {fmean(each.p95_ms for each in found):.0f} ms")
        row(f"{queue}, {loss:g} %", *said)


def beside(bench: Bench) -> None:
    """What others keep of what they have beside their own kind, one beside one and three beside three."""
    table("beside as many under, loss", "others keep: mean, least", "own share", "all use")
    for queue, loss in product(("codel", "pie", "dualpi2"), LOSSES):
        each = product(MIXED, (1, 3), RIVALS)
        networks = [Network(queue, *path, loss, n, n, rival) for path, n, rival in each]
        say(bench, f"{queue}, {loss:g} %", networks)


def scanned(bench: Bench) -> None:
    """The same under CoDel, over each of the networks that took part in the choice."""
    table("beside as many under CoDel, over", "others keep: mean, least", "own share", "all use")
    for rate, rtt in SCANNED:
        each = product(LOSSES, (1, 3), RIVALS)
        networks = [Network("codel", rate, rtt, loss, n, n, rival) for loss, n, rival in each]
        say(bench, f"{rate} Mbit/s {rtt} ms", networks)


def unequal(bench: Bench) -> None:
    """Without loss, for one beside one, two beside two, four beside one and one beside four."""
    table("beside more or fewer under", "others keep: mean, least", "own share", "all use")
    counts = ((1, 1), (2, 2), (4, 1), (1, 4))
    for queue in ("codel", "pie", "dualpi2", "red"):
        each = product(UNEQUAL, counts, RIVALS)
        say(bench, queue, [Network(queue, *path, 0, n, m, rival) for path, (n, m), rival in each])


def say(bench: Bench, name: str, networks: list[Network]) -> None:
    found = list(bench.pool.map(bench.shared, networks))
    own = [each.own for each in found]
    said = f"{min(own):.2f} to {max(own):.2f}, mean {fmean(own):.2f}"
    row(name, mean_and_least([each.keep for each in found]), said, f"{fmean(each.use for each in found):.2f}")


TABLES = {each.__name__: each for each in (alone, beside, scanned, unequal)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each cell (default: 3)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    bench = Bench(options.suimon.resolve(), options.seeds)
    for name, print_table in TABLES.items():
        if options.only in (None, name):
            print_table(bench)
            print(flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"managed: {error}", file=sys.stderr)
        sys.exit(1)
