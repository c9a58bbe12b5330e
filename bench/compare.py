"""Runs the scenarios in turn on every simulator."""

from __future__ import annotations

from dataclasses import dataclass, field

from measure import BenchError, Usage, counter, median, median_usage, usage
from scenarios import SUIMON, Case
from simulators import Counts, Simulator

STARTUP_RUNS = 2


@dataclass
class Measured:
    """One case on one simulator."""

    seconds: float
    counts: Counts
    suimon_packets: int
    """What Suimon's bottlenecks send in the same simulated time."""
    startup: Usage
    runs: list[Usage] = field(default_factory=list)
    instructions_per_packet: float | None = None

    def nanoseconds(self) -> list[float]:
        """CPU time per bottleneck data packet of each run, starting included."""
        return [one.cpu * 1e9 / self.counts.packets for one in self.runs]

    def hops_per_second(self) -> float:
        return self.counts.hops * 1e9 / (median(self.nanoseconds()) * self.counts.packets)

    def peak_bytes(self) -> int:
        return max(one.peak_bytes for one in self.runs)

    def difference(self) -> float:
        """By how much the packets differ from Suimon's."""
        return self.counts.packets / self.suimon_packets - 1


@dataclass
class Compared:
    """One case on all simulators; a text says why there are no numbers."""

    case: Case
    results: dict[str, Measured | str]
    failures: list[str]

    def measured(self, name: str) -> Measured | None:
        result = self.results.get(name)
        return result if isinstance(result, Measured) else None

    def ratio(self, peer: str) -> float | None:
        """How many times the peer's CPU time Suimon's is, run by run."""
        ours, theirs = self.measured(SUIMON), self.measured(peer)
        if ours is None or theirs is None:
            return None
        pairs = zip(theirs.nanoseconds(), ours.nanoseconds(), strict=False)
        return median([their / our for their, our in pairs])


def compare(case: Case, simulators: list[Simulator], rounds: dict[str, int]) -> Compared:
    suimon = next(one for one in simulators if one.name == SUIMON)
    results: dict[str, Measured | str] = {}
    failures: list[str] = []
    ready: list[tuple[Simulator, Measured]] = []
    for simulator in simulators:
        seconds = case.seconds.get(simulator.name)
        if seconds is None:
            results[simulator.name] = "not run"
            continue
        reason = simulator.prepare()
        if reason is not None:
            results[simulator.name] = reason
            continue
        try:
            measured = Measured(
                seconds,
                simulator.counts(case, seconds),
                suimon.counts(case, seconds).packets,
                median_usage(simulator.startup(case), STARTUP_RUNS),
            )
            measured.instructions_per_packet = _instructions(simulator, case, seconds)
        except BenchError as error:
            results[simulator.name] = "failed"
            failures.append(f"{case.name}: {error}")
            continue
        results[simulator.name] = measured
        ready.append((simulator, measured))
    for turn in range(max(rounds.values())):
        for simulator, measured in ready:
            if turn < rounds[simulator.name]:
                measured.runs.append(usage(simulator.command(case, measured.seconds)))
    return Compared(case, results, failures)


def _instructions(simulator: Simulator, case: Case, seconds: float) -> float | None:
    """Per bottleneck packet, without what starting costs."""
    method = counter()
    if method is None:
        return None
    name, count = method
    if name != "perf":
        # Callgrind is some fifty times slower than the processor.
        seconds = case.last_start + seconds / 40
    instructions = count(simulator.command(case, seconds)) - count(simulator.startup(case))
    return instructions / simulator.counts(case, seconds).packets
