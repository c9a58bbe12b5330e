"""The simulator beside the real kernel: python3 bench/truth.py [--write]

Each cell is one link of 10 Mbit/s and 62 ms with senders and a queue discipline of the kernel, in `suimon lab` (virtual
time, the same bytes each time), and the same link in the simulator. Flows start at the same times in both: when the
kernel's did. Captures of every packet that comes to the kernel's queue and that leaves it tell the rest.
Records stay in target/bench, and the same job takes its record again. `--write` writes docs/truth.md.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean, pstdev

from guest_link import (
    FULL_PACKET,
    Job,
    Measure,
    Record,
    Senders,
    Simulated,
    Tally,
    delay_ms,
    in_kernel,
    in_simulator,
    loss,
    starts,
)
from measure import ROOT, WORK, BenchError
from page import write_between
from passages import waits
from simulators import built

PAGE = ROOT / "docs" / "truth.md"
RTT_MS = 60
SECONDS = 30
# Of the simulator, for each of the kernel's; more where losses are random.
SIMULATED_SEEDS = 3
SIMULATED_SEEDS_WITH_LOSS = 24

TBF = (
    "tc -n r qdisc add dev rb root handle 1: stab overhead -14 linklayer ethernet tbf rate 10mbit burst 1600 limit "
    "64mb; tc -n r qdisc add dev rb parent 1: handle 10: "
)
RED = "red limit 150000 min 30000 max 90000 avpkt 1000 burst 51 probability 0.1 bandwidth 10mbit"
# The default burst gives a weight of 1/16.
CHOKE = "choke limit 100 min 20 max 60 probability 0.1 bandwidth 10mbit"


@dataclass(frozen=True)
class Queue:
    """A queue discipline: as `tc` sets it, and as the simulator names it."""

    kernel: str
    simulator: str
    # Of the simulator, in packets.
    buffer: int = 1000
    # What `tc` is told with ECN and without.
    with_ecn: str = ""
    without_ecn: str = ""
    # Packets are dropped as they are to leave, and not as they come.
    drops_at_head: bool = False


# PIE's interval of 15 ms is 16 ms on a kernel of 250 ticks a second.
QUEUES = {
    "pfifo": Queue(TBF + "pfifo limit 100", "droptail", 100),
    "sfq": Queue(TBF + "sfq limit 127", "sfq:shaper=tbf", 127),
    "red": Queue(TBF + RED, "red:min_th=30kB:max_th=90kB:w_q=0.03125:gentle=false:rules=linux", 100, "ecn"),
    "choke": Queue(TBF + CHOKE, "choke:min=20:max=60:w_q=0.0625:max_p=0.1:shaper=tbf", 100, "ecn"),
    "codel": Queue(TBF + "codel limit 1000", "codel:rules=linux:shaper=tbf", 1000, "ecn", "noecn", drops_at_head=True),
    "fq_codel": Queue(
        TBF + "fq_codel limit 1000", "fq-codel:rules=linux:shaper=tbf", 1000, "ecn", "noecn", drops_at_head=True
    ),
    "pie": Queue(TBF + "pie limit 1000", "pie-linux:tupdate=16ms:shaper=tbf", 1000, "ecn"),
    "fq_pie": Queue(TBF + "fq_pie limit 1000", "fq-pie:tupdate=16ms:shaper=tbf", 1000, "ecn"),
    "cake": Queue(
        "tc -n r qdisc add dev rb root handle 10: cake bandwidth 10mbit overhead 0", "cake", drops_at_head=True
    ),
}
# Senders whose names differ.
SENDERS = {
    "cubic": "cubic-linux",
    "cubic, no HyStart": "cubic-linux:hystart=false",
    "highspeed": "highspeed:rules=linux",
    "vegas": "vegas-linux",
}


@dataclass(frozen=True)
class Cell:
    """A case that both go through."""

    cc: str
    queue: str
    flows: int
    ecn: bool = False
    # Share of the packets of data that are lost behind the queue.
    loss: float = 0

    @property
    def name(self) -> str:
        parts = [self.cc.replace(", ", "-").replace(" ", ""), self.queue, str(self.flows)]
        loss = [f"loss{self.loss:g}".replace(".", "_")] if self.loss else []
        return "-".join([*parts, *(["ecn"] if self.ecn else []), *loss])

    def seeds(self, of_all: int) -> int:
        """How many seeds of the kernel it takes. A single flow's short queue depends on where slow start ends, and what
        random losses do on when they come."""
        if self.loss:
            return of_all * 4
        return of_all * (2 if self.flows == 1 and self.queue != "pfifo" else 1)

    def senders(self, seed: int) -> Senders:
        simulator = SENDERS.get(self.cc, self.cc)
        begin = starts(seed, self.flows, 0.2, 0.1)
        return Senders(self.cc.split(",")[0], simulator, self.ecn, begin, delay_ms(seed, RTT_MS))

    def commands(self) -> str:
        """What sets the kernel's queue up."""
        queue = QUEUES[self.queue]
        lines = [
            f"{queue.kernel} {queue.with_ecn if self.ecn else queue.without_ecn}",
            f"echo {int('no HyStart' not in self.cc)} > /sys/module/tcp_cubic/parameters/hystart",
        ]
        if self.loss:
            lines.append(loss(self.loss))
        if self.cc == "dctcp":
            # Its receiver echoes each mark.
            lines.append("ip netns exec b sysctl -qw net.ipv4.tcp_congestion_control=dctcp")
        return "\n".join(lines)


CELLS = [
    *(Cell(cc, "pfifo", 1) for cc in ("reno", "cubic", "cubic, no HyStart", "bic", "vegas", "highspeed")),
    *(Cell(cc, "pfifo", 1) for cc in ("scalable", "htcp", "westwood", "illinois", "hybla", "veno", "yeah", "bbr")),
    *(Cell(cc, "pfifo", 4) for cc in ("reno", "cubic", "bbr")),
    *(Cell("cubic", queue, flows, True) for queue in QUEUES if queue not in ("pfifo", "sfq") for flows in (1, 4)),
    *(Cell("cubic", queue, 4) for queue in QUEUES if queue != "pfifo"),
    *(Cell("dctcp", "red", flows, True) for flows in (1, 4)),
    *(Cell(cc, "pfifo", 1, loss=0.005) for cc in ("reno", "cubic", "bbr")),
    Cell("cubic", "pfifo", 20),
    Cell("cubic", "fq_codel", 20, True),
    Cell("cubic", "pfifo", 50),
    Cell("cubic", "fq_codel", 50, True),
]


@dataclass(frozen=True)
class Outcome:
    """A cell's numbers."""

    goodput_mbps: float
    backlog_kb: float
    p95_ms: float
    drops: float
    marks: float


def mean_of(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        goodput_mbps=fmean(outcome.goodput_mbps for outcome in outcomes),
        backlog_kb=fmean(outcome.backlog_kb for outcome in outcomes),
        p95_ms=fmean(outcome.p95_ms for outcome in outcomes),
        drops=fmean(outcome.drops for outcome in outcomes),
        marks=fmean(outcome.marks for outcome in outcomes),
    )


def job_of(cell: Cell, seed: int, kernel: str | None) -> Job:
    folder = WORK / "truth" / f"{cell.name}-{(kernel or 'newest').replace('.', '_')}-{seed}"
    options = ("--seed", str(seed), *(("--kernel", kernel) if kernel else ()))
    return Job(folder, cell.senders(seed), cell.commands(), SECONDS, options)


def of_cell(suimon: Path, cell: Cell, seed: int, kernel: str | None) -> tuple[Outcome, Outcome, str]:
    """The cell in the simulator and in the kernel, and the kernel's version."""
    job = job_of(cell, seed, kernel)
    record = in_kernel(suimon, job)
    ours = of_simulator(suimon, cell, job.folder, job.senders.started(record))
    return ours, of_kernel(cell, record), record.kernel


def of_kernel(cell: Cell, record: Record) -> Outcome:
    """The numbers of the first `SECONDS` from the first packet of data on."""
    # A token bucket lets a packet go and then waits as long as its transmission takes, so that what passes between
    # coming and leaving is the waiting time, without the transmission.
    begin, end = record.begin_s, record.begin_s + SECONDS
    of_all = zip(record.packets, waits(record.packets, dropped_at_head=QUEUES[cell.queue].drops_at_head), strict=True)
    within = [(packet, wait) for packet, wait in of_all if begin <= packet.came_s < end]
    left = [(packet, wait) for packet, wait in within if packet.left_s is not None]
    drops = len(within) - len(left) + record.lost
    delivered = [packet.size_bytes for packet, _ in left if packet.left_s is not None and packet.left_s < end]
    arrived = sum(delivered) - FULL_PACKET * record.lost
    return Outcome(
        goodput_mbps=arrived * 1448 / FULL_PACKET * 8 / SECONDS / 1e6,
        backlog_kb=sum(packet.size_bytes * wait for packet, wait in within) / SECONDS / 1e3,
        p95_ms=sorted(wait for _, wait in left)[int(len(left) * 0.95)] * 1e3,
        drops=drops,
        marks=sum(packet.is_marked for packet, _ in left),
    )


def spread(suimon: Path, cell: Cell) -> str:
    """How far runs of the simulator alone lie apart: mean and standard deviation over starts, delays and seeds."""
    found = []
    for seed in range(1, 9):
        senders = cell.senders(seed)
        phase = random.Random(seed).uniform(0, 1e-3)
        senders = replace(senders, starts_s=[start + phase for start in senders.starts_s])
        found += runs_of_simulator(suimon, cell, WORK / "truth" / f"{cell.name}-spread", senders)
    shown = {name: [getattr(one, name) for one in found] for name in ("goodput_mbps", "backlog_kb", "drops", "marks")}
    texts = [f"{name} {fmean(values):.2f} ± {pstdev(values):.2f}" for name, values in shown.items()]
    return f"{cell.name}: {', '.join(texts)}, of {len(found)} runs"


def of_simulator(suimon: Path, cell: Cell, folder: Path, senders: Senders) -> Outcome:
    """The cell in the simulator: the mean over its seeds."""
    return mean_of(runs_of_simulator(suimon, cell, folder, senders))


def runs_of_simulator(suimon: Path, cell: Cell, folder: Path, senders: Senders) -> list[Outcome]:
    queue = QUEUES[cell.queue]
    simulated = Simulated(queue.simulator, f"{queue.buffer} packets", SECONDS, cell.loss)
    seeds = SIMULATED_SEEDS_WITH_LOSS if cell.loss else SIMULATED_SEEDS
    return [
        Outcome(
            goodput_mbps=float(run.whole["goodput_bps"]) / 1e6,
            backlog_kb=float(run.whole["backlog_mean_bytes"]) / 1e3,
            p95_ms=float(run.whole["delay_p95_ms"]),
            drops=float(run.whole["packets_lost"]),
            marks=float(run.whole["packets_marked"]),
        )
        for run in in_simulator(suimon, folder, senders, simulated, seeds)
    ]


def measures(ours: Outcome, kernel: Outcome) -> list[Measure]:
    return [
        Measure("goodput", ours.goodput_mbps, kernel.goodput_mbps, 0.05, 2),
        Measure("backlog", ours.backlog_kb, kernel.backlog_kb, 0.10, 1),
        Measure("p95", ours.p95_ms, kernel.p95_ms, 0.10, 1),
        Measure("drops", ours.drops, kernel.drops, 0.20, 0, count=True),
        Measure("marks", ours.marks, kernel.marks, 0.20, 0, count=True),
    ]


def labels(cell: Cell) -> list[str]:
    loss = f", {cell.loss:.1%} loss" if cell.loss else ""
    return [f"{cell.flows} {cell.cc}{loss}", cell.queue, "yes" if cell.ecn else "no"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    seeds = "of the kernel; twice as many for one flow, four times with loss (default: 2)"
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help=seeds)
    parser.add_argument("--only", metavar="TEXT", help="cells whose names contain this")
    parser.add_argument("--guests", type=int, default=2, metavar="N", help="guests at a time (default: 2)")
    parser.add_argument("--kernel", metavar="VERSION", help="the kernel, by the beginning of its version")
    parser.add_argument("--spread", action="store_true", help="only how far runs of the simulator lie apart")
    parser.add_argument("--recorded", action="store_true", help="only cells of which there are records")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    cells = [cell for cell in CELLS if not options.only or options.only in cell.name]

    def jobs_of(cell: Cell) -> list[tuple[Cell, int, str | None]]:
        return [(cell, seed, options.kernel) for seed in range(1, cell.seeds(options.seeds) + 1)]

    if options.spread:
        for cell in cells:
            print(spread(suimon, cell), flush=True)
        return 0
    if options.recorded:
        cells = [cell for cell in cells if all(job_of(*job).is_recorded for job in jobs_of(cell))]
    jobs = [job for cell in cells for job in jobs_of(cell)]
    lines, tally, kernel = [], Tally(), ""
    with ThreadPoolExecutor(options.guests) as pool:
        results = pool.map(lambda job: of_cell(suimon, *job), jobs)
        for cell in cells:
            found = list(islice(results, cell.seeds(options.seeds)))
            kernel = found[0][2]
            ours, theirs = mean_of([one for one, _, _ in found]), mean_of([one for _, one, _ in found])
            lines.append(tally.row(labels(cell), measures(ours, theirs)))
            print(lines[-1], flush=True)
    print(f"\ntruth: {tally.text}")
    if options.write:
        head = [
            f"Kernel {kernel}, seeds: {options.seeds}, {2 * options.seeds} where one flow keeps a short queue, and "
            f"{4 * options.seeds} with random loss; simulator {SIMULATED_SEEDS} for each of them, "
            f"{SIMULATED_SEEDS_WITH_LOSS} with loss. **{tally.text}.**",
            "",
            "| Senders | Queue | ECN | Goodput, Mbit/s | Backlog, kB | p95, ms | Drops | Marks |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        write_between(PAGE, "other" if options.kernel else "table", "\n".join([*head, *lines]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"truth: {error}", file=sys.stderr)
        sys.exit(1)
