"""The bars of the open mode, beside its rivals: python3 bench/open.py [--only TEXT] [--senders NAMES]

Each cell is a link with flows. The program prints what each sender does there, and whether `fs-at-open` keeps its bar.
No cell was held back while the open mode's rules were chosen; its page says which others took no part.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from measure import WORK, BenchError, run
from simulators import built

OPEN = "fs-at-open"
# One flow of FS-AT on the same link, without rivals.
ONE = "one fs-at"
# What CUBIC gets without others, and beside as many of its kind.
ALONE, AMONG = "cubic alone", "cubic beside cubic"
SENDERS = [OPEN, "fs-at", "bbr", "bbr3", "copa", "vivace", "verus", "sprout-ewma", "vegas-linux", "cubic", "reno"]
Run = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The means over seeds."""

    use: float
    p95_ms: float
    jain: float
    # Goodput in Mbit/s of the sender's flows, each, and of those beside them.
    own: list[float]
    others: list[float]
    # Of the flows the other way.
    back: list[float]

    @property
    def share(self) -> float:
        """Of what would be fair, the part that the sender's flows have."""
        own, everything = sum(self.own), sum(self.own) + sum(self.others)
        fair = everything * len(self.own) / (len(self.own) + len(self.others))
        return own / fair


# Judges an outcome beside those of all senders.
Bar = Callable[[Outcome, dict[str, Outcome]], bool]


@dataclass(frozen=True)
class Cell:
    """A link, flows, and the bar."""

    name: str
    bar: str
    keeps: Bar
    link: str
    flows: int = 1
    rival: str | None = None
    starts: list[str] = field(default_factory=list)
    seconds: int = 60
    warmup: int = 0
    reverse: str = 'rate = "unlimited"'
    ecn: bool = False

    def beside(self) -> dict[str, tuple[Cell, str]]:
        """Further cells and their senders, which the bar compares with."""
        if self.keeps in (shares, eight_share):
            return {ONE: (Cell(f"one of {self.name}", "", self.keeps, self.link), "fs-at")}
        return {}

    def scenario(self, sender: str) -> str:
        text = (
            f'name = "open"\nduration = "{self.seconds}s"\nwarmup = "{self.warmup}s"\nrecord_interval = "off"\n'
            f'stop_when_complete = false\n[[link]]\nname = "line"\nbetween = ["a", "b"]\n{self.link}\n'
            f'[link.reverse]\nqueue = "droptail"\n{self.reverse}\n'
        )
        starts = self.starts or ['"0s"'] * self.flows
        for nth, start in enumerate(starts):
            text += flow(f"own{nth}", sender, start, ecn=self.ecn)
        for nth in range(self.flows if self.rival else 0):
            text += flow(f"other{nth}", self.rival or "", '["0s", "2s"]', ecn=self.ecn)
        return text


def flow(name: str, sender: str, start: str, source: str = "a", *, ecn: bool = False) -> str:
    target = "a" if source == "b" else "b"
    return (
        f'[[flow]]\nname = "{name}"\nfrom = "{source}"\nto = "{target}"\n'
        f'cc = "{sender}"\nstart = {start}\nwindow = "16MB"\n' + ("stack = { ecn = true }\n" if ecn else "")
    )


class FarCell(Cell):
    """Two flows whose round trips are four to one: the second comes from further away."""

    def scenario(self, sender: str) -> str:
        far = (
            '[[link]]\nname = "far"\nbetween = ["x", "a"]\nrate = "unlimited"\ndelay = "15ms"\nreported = false\n'
            '[link.reverse]\nrate = "unlimited"\ndelay = "15ms"\n'
        )
        near = Cell.scenario(self, sender)
        return near + far + flow("other0", sender, '["0s", "1s"]', "x")


@dataclass(frozen=True)
class TwoWayCell(Cell):
    """Flows of a sender beside others that go the other way, of the same sender or of `other_way`."""

    back: int = 1
    other_way: str = ""

    def scenario(self, sender: str) -> str:
        there = Cell.scenario(self, sender)
        return there + "".join(
            flow(f"back{nth}", self.other_way or sender, '["0s", "1s"]', "b") for nth in range(self.back)
        )


class HarmCell(Cell):
    """Flows of CUBIC beside as many of a sender: what they lose by it (Ware and others, HotNets 2019)."""

    def beside(self) -> dict[str, tuple[Cell, str]]:
        alone = replace(self, name=f"alone of {self.name}", rival=None)
        return {ALONE: (alone, "cubic"), AMONG: (self, "cubic")}


def wire(rate: float, rtt_ms: float, buffer: str = "1000 packets", more: str = "") -> str:
    return f'rate = "{rate:g}Mbit"\ndelay = "{int(rtt_ms * 500)}us"\nbuffer = "{buffer}"\n{more}'


def has_its_share(own: Outcome, _: dict[str, Outcome]) -> bool:
    return 0.5 <= own.share <= 1.5


def shares(own: Outcome, all_of_them: dict[str, Outcome]) -> bool:
    return own.use >= 0.97 and own.p95_ms <= 2 * all_of_them[ONE].p95_ms and own.jain >= 0.98


def eight_share(own: Outcome, all_of_them: dict[str, Outcome]) -> bool:
    return shares(own, all_of_them) and own.p95_ms <= 40


def forty(own: Outcome, _: dict[str, Outcome]) -> bool:
    return own.use >= 0.97 and own.p95_ms <= 40 and own.jain >= 0.98


def goodput_at_least(mbps: float) -> Bar:
    return lambda own, _: sum(own.own) >= mbps


def harm(to: Outcome, found: dict[str, Outcome]) -> float:
    """Of the goodput that CUBIC has alone, the part that it loses."""
    return 1 - sum(to.others) / sum(found[ALONE].own)


def harms_as_cubic(own: Outcome, found: dict[str, Outcome]) -> bool:
    return harm(own, found) <= 1.2 * harm(found[AMONG], found)


def takes_no_more(own: Outcome, _: dict[str, Outcome]) -> bool:
    return own.use >= 0.97 and own.share <= 1.05


def no_worse_than_fs_at(own: Outcome, all_of_them: dict[str, Outcome]) -> bool:
    """In goodput, since a radio has no use, and in delay."""
    fs_at = all_of_them.get("fs-at")
    return fs_at is not None and sum(own.own) >= 0.999 * sum(fs_at.own) and own.p95_ms <= fs_at.p95_ms


def sharing() -> Iterator[Cell]:
    bar = "link 97 %, Jain 0.98, p95 twice that of one FS-AT flow"
    for count in (1, 2, 4, 8, 16):
        keeps = eight_share if count == 8 else shares
        said = f"{bar}, 40 ms" if count == 8 else bar
        yield Cell(f"{count} at once, 10 Mbit/s 40 ms", said, keeps, wire(10, 40), count)
        if count > 1:
            starts = [f'["{10 * nth}s", "{10 * nth + 2}s"]' for nth in range(count)]
            last = 10 * (count - 1) + 2
            name = f"{count}, 10 s apart, 10 Mbit/s 40 ms"
            yield Cell(name, said, keeps, wire(10, 40), count, None, starts, last + 60, last)
    for rate, rtt in ((10, 10), (2, 10), (2, 200), (100, 10), (100, 200)):
        yield Cell(f"4 at once, {rate} Mbit/s {rtt} ms", bar, shares, wire(rate, rtt), 4)


def short_buffers() -> Iterator[Cell]:
    """Flows of its own kind in buffers of 1 to 3 bandwidth-delay products."""
    bar = "link 97 %, Jain 0.98, p95 40 ms"
    for rate, rtt, count in ((10, 40, 4), (20, 100, 4), (50, 60, 12), (50, 80, 8)):
        for products in (1, 2, 3):
            packets = round(rate * rtt / 12 * products)
            link = wire(rate, rtt, f"{packets} packets")
            for when, starts, last in (("at once", [], 0), ("within 2 s", ['["0s", "2s"]'] * count, 2)):
                name = f"{count} {when}, {rate} Mbit/s {rtt} ms, {products} BDP"
                yield Cell(name, bar, forty, link, count, None, starts, last + 60, last)


def beside_others() -> Iterator[Cell]:
    bar = "0.5 to 1.5 of a fair share"
    for rival in ("cubic", "reno"):
        for count, rate in ((1, 10), (4, 50)):
            for products in (0.5, 1, 2, 4):
                packets = round(rate * 1e6 * 0.04 / 8 / 1500 * products)
                link = wire(rate, 40, f"{packets} packets")
                name = f"{count} beside {count} {rival}, {products:g} BDP"
                yield Cell(name, bar, has_its_share, link, count, rival, seconds=120, warmup=20)
    # These take longer here from one loss to the next.
    for rival in ("cubic", "reno"):
        for rtt in (20, 40, 80):
            for products in (1, 2):
                packets = round(50e6 * rtt / 1e3 / 8 / 1500 * products)
                link = wire(50, rtt, f"{packets} packets")
                name = f"1 beside 1 {rival}, 50 Mbit/s {rtt} ms, {products} BDP"
                yield Cell(name, bar, has_its_share, link, 1, rival, seconds=120, warmup=20)
    yield FarCell(
        "round trips 10 and 40 ms",
        "the long one 0.3 of a fair share",
        lambda own, _: 2 - own.share >= 0.3,
        wire(10, 10),
        1,
    )


def harming() -> Iterator[Cell]:
    bar = "harm to CUBIC 1.2 times that of another CUBIC"
    for count, rate in ((1, 10), (4, 50)):
        for products in (0.5, 1, 2, 4):
            packets = round(rate * 1e6 * 0.04 / 8 / 1500 * products)
            name = f"harm, {count} beside {count} cubic, {products:g} BDP"
            link = wire(rate, 40, f"{packets} packets")
            yield HarmCell(name, bar, harms_as_cubic, link, count, "cubic", seconds=120, warmup=20)


def rerouted() -> Iterator[Cell]:
    """From the tenth second after a change of the route on."""
    bar = "link 95 % from 10 s after the change on"
    changes = [(60, count, rate) for count in (1, 4) for rate in (10, 100)]
    changes += [(30, 1, 20), (150, 2, 30)]
    for what, ways in (("longer", "20s.."), ("shorter", "0s..20s")):
        for more_ms, count, rate in changes:
            detour = f'detour = {{ delay = "{more_ms}ms", during = "{ways}" }}'
            name = f"route {what} by {more_ms} ms, {count} over {rate} Mbit/s 40 ms"
            link = wire(rate, 40, more=detour)
            yield Cell(name, bar, lambda own, _: own.use >= 0.95, link, count, seconds=60, warmup=30)


def varying(traces: Path | None) -> Iterator[Cell]:
    bar = "goodput and p95 no worse than FS-AT's"
    for profile in ("PA3", "PB3", "VA30"):
        link = f'hsdpa = {{ profile = "{profile}", geometry = "10dB" }}\ndelay = "20ms"\nbuffer = "1000 packets"'
        yield Cell(f"HSDPA {profile}", bar, no_worse_than_fs_at, link, seconds=120)
    files = sorted(each for each in traces.iterdir() if each.suffix in (".up", ".down")) if traces else []
    for file in files:
        link = f'trace = "{file.resolve()}"\ndelay = "20ms"\nbuffer = "1000 packets"'
        yield Cell(file.name, bar, no_worse_than_fs_at, link, seconds=120)
    steps = WORK / "open" / "steps.csv"
    steps.parent.mkdir(parents=True, exist_ok=True)
    steps.write_text("time_s,rate_bps\n0,10000000\n20,2000000\n40,10000000\n60,10000000\n")
    link = f'schedule = "{steps}"\ndelay = "20ms"\nbuffer = "1000 packets"'
    yield Cell("steps 10, 2, 10 Mbit/s", "p95 33 ms", lambda own, _: own.p95_ms <= 33, link)


def lossy() -> Iterator[Cell]:
    for loss in (0, 0.5, 1, 2):
        for rate, rtt in ((10, 40), (50, 100)):
            link = wire(rate, rtt, more=f'loss = "{loss}%"')
            least = 0.97 * (1 - loss / 100) * 0.97 * rate * 1448 / 1500
            bar = f"{least:.1f} Mbit/s of goodput"
            yield Cell(f"loss {loss} %, {rate} Mbit/s {rtt} ms", bar, goodput_at_least(least), link)


def queues() -> Iterator[Cell]:
    for queue in ("codel", "fq-codel", "rtt-aqm", "dualpi2"):
        link = wire(10, 40, more=f'queue = "{queue}"')
        yield Cell(f"4 under {queue}", "link 97 %", lambda own, _: own.use >= 0.97, link, 4)
        bar = "link 97 %, no more than 1.05 of a fair share"
        yield Cell(f"4 beside 4 cubic under {queue}", bar, takes_no_more, link, 4, "cubic")
        marked = f"{queue}, with ECN"
        yield Cell(f"4 under {marked}", "link 97 %", lambda own, _: own.use >= 0.97, link, 4, ecn=True)
        yield Cell(f"4 beside 4 cubic under {marked}", bar, takes_no_more, link, 4, "cubic", ecn=True)


def two_ways() -> Iterator[Cell]:
    """A download beside an upload of the same line, from the tenth second on."""
    bar = "link 97 %, Jain 0.98, p95 40 ms"
    lines = ((50, 10, 30, 1, 1), (20, 5, 60, 4, 4), (20, 20, 60, 1, 1), (5, 5, 200, 2, 2), (200, 20, 10, 4, 1))
    cases = [(line, "", 1000) for line in lines]
    cases += [(lines[0], "cubic", 100), (lines[0], "cubic", 1000), ((50, 10, 100, 2, 2), "reno", 100)]
    for (down, up, rtt, count, back), other_way, packets in cases:
        others = f"{back} of {other_way} with {packets} packets" if other_way else f"{back}"
        name = f"{count} beside {others} the other way, {down} and {up} Mbit/s {rtt} ms"
        cell = TwoWayCell(name, bar, forty, wire(down, rtt), count, warmup=10, back=back, other_way=other_way)
        reverse = f'rate = "{up}Mbit"\ndelay = "{rtt * 500}us"\nbuffer = "{packets} packets"'
        yield replace(cell, reverse=reverse)


def outcome(suimon: Path, cell: Cell, sender: str, seeds: int) -> Outcome:
    safe = "".join(letter if letter.isalnum() else "-" for letter in f"{cell.name}-{sender}")
    file = WORK / "open" / f"{safe}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(cell.scenario(sender))
    command = [str(suimon), "run", str(file), "--json", "--no-files", "--set", f"seeds={seeds}"]
    result = json.loads(run(command, cell.name))

    def mean(key: str) -> float:
        return fmean(float(each[key] or 0) for each in result["runs"])

    # By the name of the flow without its number.
    groups: dict[str, dict[str, list[float]]] = {"own": {}, "other": {}, "back": {}}
    for each in result["flows"]:
        group = groups[each["flow"].rstrip("0123456789")]
        group.setdefault(each["flow"], []).append(each["goodput_bps"] / 1e6)
    goodputs = [fmean(values) for values in groups["own"].values()]
    jain = sum(goodputs) ** 2 / (len(goodputs) * sum(value**2 for value in goodputs))
    return Outcome(
        use=mean("utilisation"),
        p95_ms=mean("delay_p95_ms"),
        jain=jain,
        own=goodputs,
        others=[fmean(values) for values in groups["other"].values()],
        back=[fmean(values) for values in groups["back"].values()],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", help="cells whose names contain this")
    parser.add_argument("--senders", default=",".join(SENDERS), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="also links of these Mahimahi traces")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    senders = options.senders.split(",")
    cells = [*sharing(), *short_buffers(), *beside_others(), *harming(), *rerouted()]
    cells += [*varying(options.traces), *lossy(), *queues(), *two_ways()]
    cells = [cell for cell in cells if not options.only or options.only in cell.name]
    kept = 0
    print("| link and flows | sender | use | p95, ms | Jain | Mbit/s | of a fair share, harm | bar |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for cell in cells:
        found = {sender: outcome(suimon, cell, sender, options.seeds) for sender in senders}
        for name, (other, sender) in cell.beside().items():
            found[name] = outcome(suimon, other, sender, options.seeds)
        for sender, each in found.items():
            verdict = ""
            if sender == OPEN:
                holds = cell.keeps(each, found)
                kept += holds
                verdict = f"{cell.bar}: {'kept' if holds else '**missed**'}"
            share = f"{each.share:.2f}" if each.others else ""
            goodput = f"{sum(each.own):.2f}" + (f", back {sum(each.back):.2f}" if each.back else "")
            if ALONE in found and sender != ALONE:
                share = f"{share}, harm {harm(each, found):.2f}"
            print(
                f"| {cell.name} | {sender} | {each.use:.3f} | {each.p95_ms:.0f} | {each.jain:.3f} | "
                f"{goodput} | {share} | {verdict} |",
                flush=True,
            )
    print(f"\nopen: fs-at-open keeps {kept} of {len(cells)} bars")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"open: {error}", file=sys.stderr)
        sys.exit(1)
