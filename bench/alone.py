"""What only Suimon is asked: starting, memory per flow, the cost of probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from measure import median, median_usage, usage
from scenarios import GIGABIT, SUIMON, Case, DropTail, bdp_packets, dumbbell
from simulators import Suimon

PACKETS_IN_FLIGHT = 100


@dataclass(frozen=True)
class Alone:
    version_wall: float
    """Of `suimon --version`."""
    startup_wall: float
    """Of a run of no length."""
    idle_flow_bytes: float
    busy_flow_bytes: float
    probes: dict[str, float]
    """CPU time with all probes on as a multiple of that with all off, by case."""


def measure_alone(suimon: Suimon, cases: list[Case], *, quick: bool) -> Alone:
    starts = 20 if quick else 100
    return Alone(
        version_wall=median_usage([str(suimon.binary), "--version"], starts).wall,
        startup_wall=median_usage(suimon.startup(cases[0]), starts).wall,
        idle_flow_bytes=_bytes_per_flow(suimon, _idle, 10_000, 50_000 if quick else 100_000),
        busy_flow_bytes=_bytes_per_flow(suimon, _busy, 500, 2_000),
        probes={case.name: _probe_cost(suimon, case, 2 if quick else 7) for case in cases},
    )


def _idle(count: int) -> Case:
    """Flows that have sent a few packets and then wait for longer than the run."""
    queue = DropTail(bdp_packets(10 * GIGABIT, 20))
    links, flows = dumbbell(10 * GIGABIT, 20, queue, count, 1_000, on_off=("1ms", "10h"))
    return Case(f"idle-{count}", "idle flows", links, flows, seconds={SUIMON: 2})


def _busy(count: int) -> Case:
    """Flows that keep a hundred packets in flight each, on a link that never holds them back."""
    window = f"{PACKETS_IN_FLIGHT * 1000}B"
    links, flows = dumbbell(100 * GIGABIT, 20, DropTail(1_000_000), count, 100, window=window)
    return Case(f"busy-{count}", "busy flows", links, flows, seconds={SUIMON: 0.4})


def _bytes_per_flow(suimon: Suimon, make: Callable[[int], Case], few: int, many: int) -> float:
    """How much more memory the many take than the few."""

    def peak(count: int) -> int:
        case = make(count)
        return usage(suimon.command(case, case.seconds[SUIMON])).peak_bytes

    return (peak(many) - peak(few)) / (many - few)


def _probe_cost(suimon: Suimon, case: Case, rounds: int) -> float:
    seconds = case.seconds[SUIMON]
    off = suimon.command(case, seconds)
    on = suimon.command_with(f"{case.name}-probes", case.toml(probes=True, report_all=True), seconds)
    return median([usage(on).cpu / usage(off).cpu for _ in range(rounds)])
