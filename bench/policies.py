"""Queue policies in the kernel beside the simulator: python3 bench/policies.py [--only TEXT] [--seeds N] [--write]

Each cell is one link of 10 Mbit/s with room for 150 kB, Reno flows with ECN and a policy of `suimon queue`, in `suimon
lab` (virtual time, the same bytes each time), and the same link in the simulator. Both count what waits, without the
packet that is being sent, whenever a packet joins or leaves. Seconds 5 to 25. `--write` writes docs/queue.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

from guest_link import (
    Job,
    Measure,
    Record,
    Senders,
    Simulated,
    Tally,
    delay_ms,
    in_kernel,
    in_simulator,
    starts,
)
from measure import ROOT, WORK, BenchError
from page import write_between
from simulators import built

PAGE = ROOT / "docs" / "queue.md"
BEGIN_S, END_S = 5, 25
# Of the simulator, for each of the kernel's.
SIMULATED_SEEDS = 3


@dataclass(frozen=True)
class Cell:
    """A case that both go through."""

    policy: str
    flows: int
    rtt_ms: int

    @property
    def simulated(self) -> str:
        """As the simulator is told: programs mark packets as they arrive, the simulator's RTT-AQM as they leave."""
        return f"{self.policy}:mark=arrival" if self.policy.startswith("rtt-aqm") else self.policy

    def folder(self, seed: int) -> Path:
        return WORK / "policies" / f"{self.policy.replace(':', '-').replace('=', '-')}-{self.flows}-{seed}"


CELLS = [
    Cell("rtt-aqm:target=100kB", 30, 28),
    Cell("red:min_th=40kB:max_th=120kB", 30, 28),
    Cell("pie:target=40ms", 30, 28),
    Cell("rtt-aqm:target=75kB", 4, 60),
    Cell("red", 4, 60),
    Cell("dpd-qt", 4, 60),
    Cell("even", 4, 60),
]


@dataclass(frozen=True)
class Outcome:
    """A cell's numbers."""

    queue_kb: float
    cov: float
    marks: float
    drops: float


def mean_of(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        fmean(one.queue_kb for one in outcomes),
        fmean(one.cov for one in outcomes),
        fmean(one.marks for one in outcomes),
        fmean(one.drops for one in outcomes),
    )


def of_cell(suimon: Path, cell: Cell, seed: int) -> tuple[Outcome, Outcome]:
    """The cell in the simulator and in the kernel."""
    senders = Senders("reno", "reno", True, starts(seed, cell.flows, 0, 0.01), delay_ms(seed, cell.rtt_ms))
    queue = f"ip netns exec r suimon queue load {cell.policy} --dev rb --rate 10Mbit --buffer 150kB --seed {seed} >&2"
    job = Job(cell.folder(seed), senders, queue, END_S, ("--seed", str(seed)))
    record = in_kernel(suimon, job)
    return of_simulator(suimon, cell, job.folder, senders.started(record)), of_kernel(record)


def of_kernel(record: Record) -> Outcome:
    """The numbers of a record from `BEGIN_S` to `END_S`."""
    begin, end = record.begin_s + BEGIN_S, record.begin_s + END_S
    events: list[tuple[float, int]] = []
    for packet in record.packets:
        # The next packet leaves a token bucket when the transmission of the last would end, within a microsecond.
        if packet.left_s is not None and packet.left_s - packet.came_s > 1e-5:
            events += [(packet.came_s, packet.size_bytes), (packet.left_s, -packet.size_bytes)]
    waiting, lengths = 0, []
    for time, change in sorted(events):
        waiting += change
        if begin <= time < end:
            lengths.append(waiting)
    mean = fmean(lengths)
    variance = fmean((length - mean) ** 2 for length in lengths)
    within = [packet for packet in record.packets if begin <= packet.came_s < end]
    marks = sum(packet.is_marked for packet in within)
    drops = sum(packet.left_s is None for packet in within)
    return Outcome(mean / 1e3, variance**0.5 / mean, marks, drops)


def of_simulator(suimon: Path, cell: Cell, folder: Path, senders: Senders) -> Outcome:
    """The cell in the simulator, as the mean over seeds."""
    steady = f'[[window]]\nname = "steady"\nfrom = "{BEGIN_S}s"'
    simulated = Simulated(cell.simulated, "150kB", END_S, head=steady)
    runs = in_simulator(suimon, folder, senders, simulated, SIMULATED_SEEDS)
    return mean_of(
        [
            Outcome(
                float(one.window["backlog_mean_bytes"]) / 1e3,
                float(one.window["backlog_cov"]),
                float(one.window["marked"]),
                float(one.window["dropped_early"]) + float(one.window["dropped_overflow"]),
            )
            for one in runs
        ]
    )


def measures(ours: Outcome, kernel: Outcome) -> list[Measure]:
    return [
        Measure("queue", ours.queue_kb, kernel.queue_kb, 0.10, 1),
        Measure("COV", ours.cov, kernel.cov, 0.15, 3),
        Measure("marks", ours.marks, kernel.marks, 0.15, 0, count=True),
        Measure("drops", ours.drops, kernel.drops, 0.15, 0, count=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of the kernel (default: 3)")
    parser.add_argument("--only", metavar="TEXT", help="cells whose policies contain this")
    parser.add_argument("--guests", type=int, default=2, metavar="N", help="guests at a time (default: 2)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    cells = [cell for cell in CELLS if not options.only or options.only in cell.policy]
    lines = [
        "| Flows, RTT | Policy | Queue, kB | COV | Marks | Drops |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    tally = Tally()
    jobs = [(cell, seed) for cell in cells for seed in range(1, options.seeds + 1)]
    with ThreadPoolExecutor(options.guests) as pool:
        results = pool.map(lambda job: of_cell(suimon, *job), jobs)
        for cell in cells:
            found = list(islice(results, options.seeds))
            ours, kernel = mean_of([one for one, _ in found]), mean_of([one for _, one in found])
            lines.append(tally.row([f"{cell.flows}, {cell.rtt_ms} ms", f"`{cell.policy}`"], measures(ours, kernel)))
            print(lines[-1], flush=True)
    print(f"\npolicies: {tally.text}")
    if options.write:
        about = f"Seeds of the kernel: {options.seeds}; of the simulator: {SIMULATED_SEEDS} for each. {tally.text}."
        write_between(PAGE, "policies", "\n".join([about, "", *lines]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"policies: {error}", file=sys.stderr)
        sys.exit(1)
