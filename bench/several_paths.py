"""Path schedulers beyond the paper: a Latin hypercube of several paths, each scheduler, each path alone.

    python3 bench/several_paths.py [--places 24] [--seed 1] [--suimon target/release/suimon] [--keep FOLDER]

A place of the design is 2 to 8 paths of 1 to 100 Mbit/s and 1 to 300 ms one way, half of them with 0 to 2 % of
loss, a quarter of them recorded cells, drop tail of one bandwidth-delay product; send and receive buffers of 16 kB
to 4 MB; and all of that with Reno, with CUBIC and with FS-AT on each path. What it prints is in
docs/several-paths.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEDULERS = ["look-ahead", "blest", "ecf", "lowest-rtt", "least-buffered", "round-robin", "redundant"]
SENDERS = ["reno", "cubic", "fs-at"]
RECORDED = ["ATT-LTE-driving-2016.down", "Verizon-LTE-short.down"]
DURATION_S, WARMUP_S = 35, 5
PACKET_BITS = 12_000


@dataclass
class PathOf:
    """One path: a rate or a recording."""

    mbps: float
    delay_ms: float
    loss: float
    trace: Path | None


@dataclass
class Place:
    """One setting, and what came of it."""

    name: str
    paths: list[PathOf]
    cc: str
    send_kb: float
    receive_kb: float
    alone_bps: list[float] = field(default_factory=list)
    outcomes: dict[str, dict[str, float]] = field(default_factory=dict)

    def need_kb(self) -> float:
        """What the receiver must hold to use all: their rates for the longest way there and the shortest back."""
        slowest, quickest = max(p.delay_ms for p in self.paths), min(p.delay_ms for p in self.paths)
        return sum(p.mbps for p in self.paths) * (slowest + quickest) / 8

    def room(self) -> float:
        return self.receive_kb / self.need_kb()

    def share(self, scheduler: str) -> float:
        return self.outcomes[scheduler]["goodput"] / sum(self.alone_bps)

    def of_best(self, scheduler: str) -> float:
        return self.outcomes[scheduler]["goodput"] / max(self.alone_bps)


def strata(count: int, chance: random.Random) -> list[float]:
    """One number from each of `count` equal parts of [0, 1), in random order."""
    numbers = [(i + chance.random()) / count for i in range(count)]
    chance.shuffle(numbers)
    return numbers


def between(low: float, high: float, at: float) -> float:
    """On a logarithmic scale."""
    return low * math.exp(math.log(high / low) * at)


def traces() -> list[Path]:
    """Measured cells where they lie beside the project, else the synthetic one that comes with it."""
    measured = [ROOT.parent / "shared" / "traces" / name for name in RECORDED]
    found = [path for path in measured if path.is_file()]
    return found or [ROOT / "traces" / "cellular-3g.down"]


def mean_mbps(trace: Path) -> float:
    times = [int(line) for line in trace.read_text().split()]
    return len(times) * PACKET_BITS / times[-1] / 1e3


def design(places: int, seed: int) -> list[Place]:
    """A Latin hypercube: of each quantity, every part of its range once."""
    chance = random.Random(seed)
    counts, send, receive = (strata(places, chance) for _ in range(3))
    paths_of = [2 + int(at * 7) for at in counts]
    total = sum(paths_of)
    rates, delays, losses, kinds = (strata(total, chance) for _ in range(4))
    recorded = traces()
    means = {trace: mean_mbps(trace) for trace in recorded}
    slots = iter(zip(rates, delays, losses, kinds, strict=True))
    made = []
    for nth in range(places):
        paths = []
        for _ in range(paths_of[nth]):
            rate, delay, loss, kind = next(slots)
            trace = recorded[int(kind * 4 * len(recorded))] if kind < 0.25 else None
            mbps = means[trace] if trace else between(1, 100, rate)
            paths.append(PathOf(mbps, between(1, 300, delay), max(0.0, 2 * loss - 1) * 0.02, trace))
        kb = [between(16, 4000, at[nth]) for at in (send, receive)]
        made += [Place(f"place-{nth + 1:03}-{cc}", paths, cc, kb[0], kb[1]) for cc in SENDERS]
    return made


def scenario(place: Place, seed: int, alone: bool) -> str:
    """All paths as one stream, for each scheduler; or a stream over each."""
    text = [
        f'name = "{place.name}{"-alone" if alone else ""}"',
        f'duration = "{DURATION_S}s"\nwarmup = "{WARMUP_S}s"\nrecord_interval = "off"\nseed = {seed}',
    ]
    for nth, path in enumerate(place.paths, 1):
        capacity = f'trace = "{path.trace}"' if path.trace else f'rate = "{path.mbps * 1e6:.0f}bit"'
        product = path.mbps * 1e6 * 2 * path.delay_ms / 1e3 / PACKET_BITS
        text.append(
            f'[[link]]\nname = "p{nth}"\nbetween = ["sender", "receiver"]\n{capacity}\n'
            f'delay = "{path.delay_ms:.3f}ms"\nloss = {path.loss:.5f}\n'
            f'buffer = "{max(10, round(product))} packets"\n'
            f'[link.reverse]\nrate = "unlimited"\n'
            f'[[flow]]\nname = "p{nth}"\nfrom = "sender"\nto = "receiver"\n'
            f'via = "p{nth}"\ncc = "{place.cc}"\n'
        )
    names = [f"p{nth}" for nth in range(1, len(place.paths) + 1)]
    streams = [[name] for name in names] if alone else [names]
    for nth, flows in enumerate(streams, 1):
        text.append(
            f'[[aggregate]]\nname = "s{nth}"\nflows = {json.dumps(flows)}\nscheduler = "least-buffered"\n'
            f'send_buffer = "{place.send_kb * 1e3:.0f}B"\nreorder_buffer = "{place.receive_kb * 1e3:.0f}B"\n'
        )
    if not alone:
        text.append(f'[[matrix]]\nset = "aggregate.s1.scheduler"\nvalues = {json.dumps(SCHEDULERS)}\n')
    return "\n".join(text)


def simulate(places: list[Place], suimon: Path, seed: int, folder: Path) -> None:
    files = []
    for place in places:
        for alone in (False, True):
            file = folder / f"{place.name}{'-alone' if alone else ''}.toml"
            file.write_text(scenario(place, seed, alone))
            files.append(file)
    command = [str(suimon), "run", *map(str, files), "--json"]
    results = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    by_name = {place.name: place for place in places}
    for row in results["aggregates"]:
        name = row["scenario"] if isinstance(row["scenario"], str) else str(row["scenario"])
        place = by_name[name.removesuffix("-alone")]
        if name.endswith("-alone"):
            place.alone_bps.append(row["goodput_bps"])
        else:
            place.outcomes[row["scheduler"]] = {
                "goodput": row["goodput_bps"],
                "reorder_kb": row["reorder_mean_bytes"] / 1e3,
                "stall_ms": row["longest_stall_ms"],
            }


def print_table(title: str, groups: Iterable[tuple[str, list[Place]]]) -> None:
    """Mean share of the sum of each scheduler in each group, and how many lie below the best path."""
    print(f"\n{title}\n\n| | places | {' | '.join(SCHEDULERS)} |\n|{' --- |' * (2 + len(SCHEDULERS))}")
    for name, places in groups:
        if places:
            cells = [f"{statistics.mean(p.share(s) for p in places):.2f}" for s in SCHEDULERS]
            best = max(range(len(cells)), key=lambda i: float(cells[i]))
            cells[best] = f"**{cells[best]}**"
            print(f"| {name} | {len(places)} | {' | '.join(cells)} |")


def report(places: list[Place]) -> None:
    print("| scheduler | share of the sum | least tenth | below 0.98 of best path | reorder memory | best in |")
    print("| --- | --- | --- | --- | --- | --- |")
    for scheduler in SCHEDULERS:
        shares = sorted(place.share(scheduler) for place in places)
        below = sum(place.of_best(scheduler) < 0.98 for place in places)
        memory = statistics.mean(place.outcomes[scheduler]["reorder_kb"] for place in places)
        best = sum(p.share(scheduler) > max(p.share(s) for s in SCHEDULERS) - 0.01 for p in places)
        print(
            f"| {scheduler} | {statistics.mean(shares):.3f} | {shares[len(shares) // 10]:.2f} "
            f"| {below} of {len(places)} | {memory:.0f} kB | {best} |"
        )

    def where(title: str, *parts: tuple[str, Callable[[Place], bool]]) -> None:
        print_table(title, [(name, [p for p in places if holds(p)]) for name, holds in parts])

    where(
        "By the receive buffer, in multiples of what all paths need",
        ("below 0.25", lambda p: p.room() < 0.25),
        ("0.25 to 1", lambda p: 0.25 <= p.room() < 1),
        ("1 to 4", lambda p: 1 <= p.room() < 4),
        ("4 and more", lambda p: p.room() >= 4),
    )
    where(
        "By the send buffer of each path",
        ("below 64 kB", lambda p: p.send_kb < 64),
        ("64 to 512 kB", lambda p: 64 <= p.send_kb < 512),
        ("512 kB and more", lambda p: p.send_kb >= 512),
    )
    where(
        "By the number of paths",
        ("2 or 3", lambda p: len(p.paths) <= 3),
        ("4 to 6", lambda p: 4 <= len(p.paths) <= 6),
        ("7 or 8", lambda p: len(p.paths) >= 7),
    )
    where("By congestion control", *((cc, lambda p, cc=cc: p.cc == cc) for cc in SENDERS))
    where(
        "By recorded cells among the paths",
        ("none", lambda p: not any(path.trace for path in p.paths)),
        ("some", lambda p: any(path.trace for path in p.paths)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--places", type=int, default=24, help="settings of the design")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suimon", type=Path, default=ROOT / "target" / "release" / "suimon")
    parser.add_argument("--keep", type=Path, help="keep the scenario files in this folder")
    arguments = parser.parse_args()
    places = design(arguments.places, arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        simulate(places, arguments.suimon, arguments.seed, folder)
    report(places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
