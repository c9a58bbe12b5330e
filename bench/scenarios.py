"""What is simulated, once for all simulators: as TOML for Suimon, as a plain list for its peers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

PAYLOAD = 1000
HEADER = 40
PACKET = PAYLOAD + HEADER
# As ns-2's Sack1 and ns-3's NewReno have them or can be given them.
STACK = (
    f'{{ mss = "{PAYLOAD}B", header = "{HEADER}B", initial_window = 10, counting = "per-ack", '
    'recovery = "rfc6675", loss_detection = "rfc6675", detects_lost_retransmissions = true, '
    'timestamps = false, f_rto = false, rto_initial = "1s", rto_min = "200ms", rto_minimum = "timeout", '
    "delayed_ack = false, quick_acks = 0, ecn = %s }"
)
HOSTS = 10
# Access links are so much faster than the bottleneck that packets hardly wait there.
ACCESS_FACTOR = 10

SUIMON, NS2, NS3 = "suimon", "ns-2", "ns-3"
SIMULATORS = (SUIMON, NS2, NS3)


@dataclass(frozen=True)
class DropTail:
    packets: int


@dataclass(frozen=True)
class Red:
    """RED that marks: limit and thresholds in bytes, weight 0.002, probability 0.1 at `high`, then gentle."""

    limit: int
    low: int
    high: int


@dataclass(frozen=True)
class Link:
    """A duplex link; nothing is lost on the way back."""

    name: str
    ends: tuple[str, str]
    rate: int
    delay_us: int
    queue: DropTail | Red | None = None

    @property
    def is_bottleneck(self) -> bool:
        return self.queue is not None


@dataclass(frozen=True)
class Flows:
    """`count` flows that start uniformly within `spread_ms`."""

    ends: tuple[str, str]
    count: int
    spread_ms: int
    on_off: tuple[str, str] | None = None
    window: str = "6MiB"


@dataclass(frozen=True)
class Bars:
    """What must hold: CPU nanoseconds and instructions per packet, and how often faster than the peers."""

    nanoseconds: int | None = None
    instructions: int | None = None
    ratios: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A scenario. `seconds` says how long each simulator runs it; one that is missing cannot."""

    name: str
    title: str
    links: list[Link]
    flows: list[Flows]
    seconds: dict[str, float]
    quick_seconds: dict[str, float] = field(default_factory=dict)
    bars: Bars = field(default_factory=Bars)

    @property
    def last_start(self) -> float:
        """When all flows have started."""
        return max(flows.spread_ms for flows in self.flows) / 1000

    def quick(self) -> Case:
        return replace(self, seconds=self.quick_seconds)

    def toml(self, *, probes: bool = False, report_all: bool = False) -> str:
        """The scenario for Suimon; `probes` samples every flow and queue ten times a second and keeps events."""
        interval, events = ("100ms", 10_000) if probes else ("off", 0)
        lines = [
            f'name = "{self.name}"',
            f'description = "{self.title}"',
            f'duration = "{self.seconds[SUIMON]}s"',
            "stop_when_complete = false",
            f'record_interval = "{interval}"',
            f"record_events = {events}",
        ]
        ecn = any(isinstance(link.queue, Red) for link in self.links)
        for link in self.links:
            lines += _link_toml(link, report_all=report_all)
        for index, flows in enumerate(self.flows):
            lines += _flows_toml(index, flows, ecn=ecn)
        return "\n".join(lines) + "\n"

    def plain(self) -> str:
        """The scenario for its peers."""
        return "\n".join(self._plain_lines()) + "\n"

    def _plain_lines(self) -> Iterator[str]:
        for link in self.links:
            a, b = link.ends
            match link.queue:
                case Red(limit, low, high):
                    queue = f"red {limit} {low} {high}"
                case DropTail(packets):
                    queue = f"droptail {packets}"
                case None:
                    queue = "droptail 100000000"
            yield f"link {a} {b} {link.rate} {link.delay_us * 1000} {queue}"
            if link.is_bottleneck:
                yield f"bottleneck {a} {b}"
        stream = random.Random(1)
        for flows in self.flows:
            for _ in range(flows.count):
                start = stream.randrange(flows.spread_ms * 1_000_000 + 1)
                yield f"flow {flows.ends[0]} {flows.ends[1]} {start}"


def _link_toml(link: Link, *, report_all: bool) -> list[str]:
    lines = [
        "[[link]]",
        f'name = "{link.name}"',
        f'between = ["{link.ends[0]}", "{link.ends[1]}"]',
        f'rate = "{link.rate}bit"',
        f'delay = "{link.delay_us}us"',
        f"reported = {str(link.is_bottleneck or report_all).lower()}",
    ]
    match link.queue:
        case Red(limit, low, high):
            lines.append(f'buffer = "{limit}B"')
            lines.append(f'queue = "red:min_th={low}B:max_th={high}B:mean_packet={PACKET}B"')
        case DropTail(packets):
            lines.append(f'buffer = "{packets} packets"')
        case None:
            lines.append('buffer = "unbounded"')
    if report_all:
        lines.append("reverse = { reported = true }")
    return lines


def _flows_toml(index: int, flows: Flows, *, ecn: bool) -> list[str]:
    lines = [
        "[[flow]]",
        f'name = "f{index}"',
        f'from = "{flows.ends[0]}"',
        f'to = "{flows.ends[1]}"',
        f"count = {flows.count}",
        f'start = ["0s", "{flows.spread_ms}ms"]' if flows.spread_ms else 'start = "0s"',
        'cc = "reno"',
        f'window = "{flows.window}"',
        # Before tail loss probes and RACK, as ns-2 and ns-3 have it here.
        'profile = "rfc-6675"',
        f"stack = {STACK % str(ecn).lower()}",
    ]
    if flows.on_off:
        lines.append(f'on_off = {{ on = "{flows.on_off[0]}", off = "{flows.on_off[1]}" }}')
    return lines


def bdp_packets(rate: int, rtt_ms: float) -> int:
    return round(rate * rtt_ms / 1000 / 8 / PACKET)


def dumbbell(
    rate: int,
    rtt_ms: float,
    queue: DropTail | Red,
    count: int,
    spread_ms: int,
    *,
    on_off: tuple[str, str] | None = None,
    window: str = "6MiB",
) -> tuple[list[Link], list[Flows]]:
    """Senders - r1 - r2 - receivers: half of the delay on the bottleneck, a quarter on either side.

    Flows share ten hosts on either side. With one host for all, ns-3 would search a thousand sockets per
    packet; with one for each, all three would mostly simulate access links.
    """
    hosts = min(HOSTS, count)
    one_way_us = round(rtt_ms * 500)
    links = [Link("bottleneck", ("r1", "r2"), rate, one_way_us // 2, queue)]
    flows = []
    for host in range(hosts):
        access = (rate * ACCESS_FACTOR, one_way_us // 4)
        links.append(Link(f"left-{host}", (f"s{host}", "r1"), *access))
        links.append(Link(f"right-{host}", ("r2", f"d{host}"), *access))
        share = count // hosts + (host < count % hosts)
        flows.append(Flows((f"s{host}", f"d{host}"), share, spread_ms, on_off, window))
    return links, flows


def parking_lot(
    rate: int, hops: int, through: int, cross: int, packets: int, spread_ms: int
) -> tuple[list[Link], list[Flows]]:
    """A line of bottlenecks: `through` flows take all of them, `cross` flows one each."""
    access = (rate * ACCESS_FACTOR, 2_000)
    links = [Link("left", ("s", "r0"), *access), Link("right", (f"r{hops}", "d"), *access)]
    flows = [Flows(("s", "d"), through, spread_ms)]
    for hop in range(hops):
        here, there = f"r{hop}", f"r{hop + 1}"
        links.append(Link(f"bottleneck-{hop}", (here, there), rate, 2_000, DropTail(packets)))
        if cross:
            links.append(Link(f"in-{hop}", (f"s{hop}", here), *access))
            links.append(Link(f"out-{hop}", (there, f"d{hop}"), *access))
            flows.append(Flows((f"s{hop}", f"d{hop}"), cross, spread_ms))
    return links, flows


MEGABIT = 1_000_000
GIGABIT = 1_000_000_000

# At least 4 times ns-2 and 100 times ns-3.
RATIOS = {NS2: 4.0, NS3: 100.0}

CASES = [
    Case(
        "B1",
        "1 flow, 100 Mbit/s, RTT 40 ms, drop tail 500 packets",
        *dumbbell(100 * MEGABIT, 40, DropTail(500), 1, 0),
        seconds={SUIMON: 100, NS2: 100, NS3: 20},
        quick_seconds={SUIMON: 100, NS2: 100, NS3: 5},
        bars=Bars(300, 2_500, RATIOS),
    ),
    Case(
        "B2",
        "50 flows, 10 Mbit/s, RTT 28 ms, RED with ECN 150 KB",
        *dumbbell(10 * MEGABIT, 28, Red(150_000, 37_500, 112_500), 50, 5_000),
        seconds={SUIMON: 300, NS2: 300, NS3: 100},
        quick_seconds={SUIMON: 300, NS2: 300, NS3: 30},
        bars=Bars(300, 2_500, RATIOS),
    ),
    Case(
        "B3",
        "100 flows, 1 Gbit/s, RTT 40 ms, drop tail 1 BDP",
        *dumbbell(1 * GIGABIT, 40, DropTail(bdp_packets(1 * GIGABIT, 40)), 100, 400),
        seconds={SUIMON: 10, NS2: 10, NS3: 4},
        quick_seconds={SUIMON: 10, NS2: 10, NS3: 0.7},
        bars=Bars(450, 2_500, RATIOS),
    ),
    Case(
        "B4",
        "1 000 flows, 10 Gbit/s, RTT 20 ms, drop tail 1 BDP",
        *dumbbell(10 * GIGABIT, 20, DropTail(bdp_packets(10 * GIGABIT, 20)), 1_000, 80),
        seconds={SUIMON: 2, NS2: 2, NS3: 0.5},
        quick_seconds={SUIMON: 2, NS2: 2, NS3: 0.2},
        bars=Bars(900, None, RATIOS),
    ),
    Case(
        "B5",
        "100 000 flows, mostly idle, 10 Gbit/s, RTT 20 ms, drop tail 1 BDP",
        *dumbbell(
            10 * GIGABIT,
            20,
            DropTail(bdp_packets(10 * GIGABIT, 20)),
            100_000,
            2_000,
            on_off=("20ms", "10s"),
        ),
        # Neither peer opens a hundred thousand connections in the memory and time that the others take.
        seconds={SUIMON: 5},
        quick_seconds={SUIMON: 3},
    ),
    Case(
        "B6",
        "10 bottlenecks of 100 Mbit/s in a line, 20 flows through all, 18 across each, drop tail 500 packets",
        *parking_lot(100 * MEGABIT, 10, 20, 18, 500, 400),
        seconds={SUIMON: 20, NS2: 20, NS3: 3},
        quick_seconds={SUIMON: 20, NS2: 10, NS3: 0.6},
        bars=Bars(None, None, RATIOS),
    ),
]
