"""How Suimon's cost per packet-hop grows with flows, hops and rate."""

from __future__ import annotations

from dataclasses import dataclass

from measure import counter, usage
from scenarios import MEGABIT, SUIMON, Case, DropTail, Flows, Link, bdp_packets, dumbbell, parking_lot
from simulators import Suimon

# A run is so long that about this many packets pass.
PACKETS = 1_000_000
QUICK_PACKETS = 200_000
# But flows need some round trips to find their windows.
MIN_SECONDS = 0.5
MAX_SECONDS = 20_000


@dataclass(frozen=True)
class Point:
    """Per packet and link that it crosses, data and acknowledgements alike."""

    x: float
    nanoseconds: float
    instructions: float | None


@dataclass(frozen=True)
class Axis:
    name: str
    setting: str
    points: list[Point]

    def spread(self) -> float:
        """The dearest point as a multiple of the cheapest: of instructions where they can be counted."""
        costs = [point.instructions or point.nanoseconds for point in self.points]
        return max(costs) / min(costs)


def measure_growth(suimon: Suimon, *, quick: bool) -> list[Axis]:
    packets = QUICK_PACKETS if quick else PACKETS
    flow_counts = [1, 100, 10_000] if quick else [1, 10, 100, 1_000, 10_000, 100_000]
    hop_counts = [1, 10, 50] if quick else [1, 2, 5, 10, 20, 50]
    decades = [0, 2, 4] if quick else [0, 1, 2, 3, 4, 5]
    rates = [MEGABIT * 10**decade for decade in decades]
    return [
        Axis(
            "flows",
            "1 Mbit/s for each flow, RTT 100 ms",
            [_point(suimon, count, _flows_case(count, packets)) for count in flow_counts],
        ),
        Axis(
            "hops",
            "10 flows of 10 Mbit/s through bottlenecks in a line, 2 ms each",
            [_point(suimon, hops, _hops_case(hops, packets)) for hops in hop_counts],
        ),
        Axis(
            "rate in bit/s",
            "10 flows, RTT 20 ms",
            [_point(suimon, rate, _rate_case(rate, packets)) for rate in rates],
        ),
    ]


def _flows_case(count: int, packets: int) -> Case:
    rate = count * MEGABIT
    links, flows = dumbbell(rate, 100, DropTail(bdp_packets(rate, 100)), count, 100)
    return _case(f"flows-{count}", links, flows, rate, packets)


def _hops_case(hops: int, packets: int) -> Case:
    rate = 100 * MEGABIT
    links, flows = parking_lot(rate, hops, 10, 0, bdp_packets(rate, 40), 100)
    return _case(f"hops-{hops}", links, flows, rate, packets // hops)


def _rate_case(rate: int, packets: int) -> Case:
    queue = DropTail(max(50, bdp_packets(rate, 20)))
    links, flows = dumbbell(rate, 20, queue, 10, 100, window="256MiB")
    return _case(f"rate-{rate}", links, flows, rate, packets)


def _case(name: str, links: list[Link], flows: list[Flows], rate: int, packets: int) -> Case:
    seconds = min(max(packets / bdp_packets(rate, 1_000), MIN_SECONDS), MAX_SECONDS)
    return Case(name, name, links, flows, seconds={SUIMON: seconds})


def _point(suimon: Suimon, x: float, case: Case) -> Point:
    seconds = case.seconds[SUIMON]
    command, nothing = suimon.command(case, seconds), suimon.startup(case)
    hops = suimon.count(case, seconds).hops
    method = counter()
    instructions = None
    if method is not None and method[0] == "perf":
        instructions = (method[1](command) - method[1](nothing)) / hops
    return Point(x, (usage(command).cpu - usage(nothing).cpu) * 1e9 / hops, instructions)
