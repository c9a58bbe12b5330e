"""The whole road: python3 bench/whole.py [--write] [--road NAME] [--lab | --live] [--write-scenario]

Runs scenarios/whole.toml: four phones with two radios each, a gateway before each radio, and routers on the way. The
four parts (FS-AT in the gateways, RTT-AQM, `even`, the choice of paths) are each there or not, in all sixteen
combinations, beside what is deployed. Prints what each combination gives its users, with 95 % intervals over the
seeds, and what each part adds. `--write` writes docs/whole.md and its picture; `--write-scenario` writes the
scenario itself.

`--road` runs one of the roads beside it instead: other radios, pages of measured sizes and a game, under some of the
combinations.

`--lab` runs some of the combinations on a real kernel in virtual time (`suimon lab`) beside the simulator, with the
same seeds, and prints both. A run takes minutes; its record stays in target/bench. `--live` does it in real time, which
needs root and a calm machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import whole_kernel
import whole_page
from measure import ROOT, BenchError, run
from simulators import built
from whole_roads import ROADS, write_traces
from whole_scenario import PARTS, SEEDS, TODAY, name_of, scenario, setups

SCENARIO = ROOT / "scenarios" / "whole.toml"
# Student's t for 95 %, two-sided, by degrees of freedom.
T95 = {1: 12.706, 4: 2.776, 9: 2.262, 19: 2.093}


@dataclass(frozen=True)
class Measure:
    """A number that users feel, of one run."""

    name: str
    unit: str
    digits: int
    more_is_better: bool


MEASURES = [
    Measure("call: 95 % of packets within", "ms", 0, False),
    Measure("page: median time", "s", 2, False),
    Measure("downloads", "Mbit/s", 2, True),
    Measure("Jain's index of the users", "", 3, True),
]
# Of the roads that have a game.
GAME = Measure("game: 99 % of packets within", "ms", 0, False)


# The links of each place, their number, and its factor; the last place is not a link.
WHERE = [
    ("transit", "delay_p95_ms", 1.0),
    ("backhaul-a", "delay_p95_ms", 1.0),
    ("backhaul-a", "utilisation", 100.0),
    ("radio-a", "delay_p95_ms", 1.0),
    ("radio-b", "delay_p95_ms", 1.0),
    ("radio-a", "bytes", 1e-6),
    ("radio-b", "bytes", 1e-6),
    ("", "", 1.0),
]


@dataclass(frozen=True)
class Estimate:
    """A mean with half the width of its 95 % interval."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, values: list[float]) -> Estimate:
        degrees = len(values) - 1
        # Between two rows of the table, that of fewer degrees: the interval is rather too wide.
        t = T95[max(known for known in T95 if known <= degrees)] if degrees else math.nan
        spread = statistics.stdev(values) / math.sqrt(len(values)) if degrees else math.nan
        return cls(statistics.fmean(values), t * spread)


def of_user(name: str) -> int:
    return int(name.split("-")[1])


def measured(result: dict[str, Any]) -> dict[str, list[list[float]]]:
    """The numbers of each run, by the combination's name: a list for each measure, in the order of the seeds."""
    duration = result["runs"][0]["duration_s"]
    starts: dict[tuple[int, str], float] = {}
    calls: dict[int, list[float]] = {}
    games: dict[int, list[float]] = {}
    for flow in result["flows"]:
        starts[flow["run"], flow["flow"]] = flow["start_s"]
        if flow["flow"].startswith("call-"):
            calls.setdefault(flow["run"], []).append(flow["delay_p95_ms"])
        elif flow["flow"].startswith("game-"):
            games.setdefault(flow["run"], []).append(flow["delay_p99_ms"])
    # A page is there with the last of its connections.
    pages: dict[int, dict[str, float]] = {}
    goodputs: dict[int, dict[int, float]] = {}
    for stream in result["aggregates"]:
        kind, run_number = stream["aggregate"].split("-")[0], stream["run"]
        if kind == "page":
            begun = min(starts[run_number, name] for name in stream["flows"].split(" "))
            # What is not there by the end counts as long as it has waited.
            took = (stream["completed_s"] or duration) - begun
            page = "-".join(stream["aggregate"].split("-")[:3])
            of_run = pages.setdefault(run_number, {})
            of_run[page] = max(took, of_run.get(page, 0.0))
        else:
            of_users = goodputs.setdefault(run_number, {})
            of_users[of_user(stream["aggregate"])] = stream["goodput_bps"] / 1e6
    found: dict[str, list[list[float]]] = {}
    for one in result["runs"]:
        number = one["run"]
        shares = list(goodputs[number].values())
        jain = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
        values = [statistics.fmean(calls[number]), statistics.median(pages[number].values()), sum(shares), jain]
        if games:
            values.append(statistics.fmean(games[number]))
        lists = found.setdefault(one["setup"], [[] for _ in values])
        for values_of, value in zip(lists, values, strict=True):
            values_of.append(value)
    return found


def on_the_way(result: dict[str, Any]) -> dict[str, list[float]]:
    """What queues and other customers have, by the combination's name: means of all runs, in the order of `PLACES`."""
    setups = {one["run"]: one["setup"] for one in result["runs"]}
    found: dict[str, list[list[float]]] = {}
    for queue in result["queues"]:
        lists = found.setdefault(setups[queue["run"]], [[] for _ in whole_page.PLACES])
        for place, (links, key, factor) in zip(lists, WHERE, strict=True):
            if links and queue["link"].startswith(links):
                place.append(float(queue[key]) * factor)
    others: dict[tuple[int, str], float] = {}
    for flow in result["flows"]:
        if flow["flow"].startswith("home-"):
            of_run = flow["run"], setups[flow["run"]]
            others[of_run] = others.get(of_run, 0.0) + flow["goodput_bps"] / 1e6
    for (_, setup), goodput in others.items():
        found[setup][-1].append(goodput)
    return {name: [statistics.fmean(values) for values in lists] for name, lists in found.items()}


def effect(found: dict[str, list[list[float]]], part: str, measure: int) -> Estimate:
    """What `part` adds to a measure in percent: the geometric mean over all combinations of the others, by seed."""
    seeds = len(next(iter(found.values()))[measure])
    others = [other for other in PARTS if other != part]
    logs = []
    for seed in range(seeds):
        ratios = []
        for count in range(len(others) + 1):
            for chosen in itertools.combinations(others, count):
                without = found[name_of(chosen)][measure][seed]
                with_part = found[name_of((*chosen, part))][measure][seed]
                ratios.append(math.log(with_part / without))
        logs.append(statistics.fmean(ratios))
    estimate = Estimate.of(logs)
    return Estimate(100 * math.expm1(estimate.mean), 100 * math.exp(estimate.mean) * estimate.half_width)


def beside_kernel(suimon: Path, where: str, names: list[str], seeds: int, duration: str) -> list[str]:
    """The tables of the same runs on a kernel and simulated."""
    of_seeds = [whole_kernel.results(suimon, where, names, seed, duration) for seed in range(1, seeds + 1)]
    worlds: list[list[whole_page.World]] = []
    for name, results in zip(names, zip(*of_seeds, strict=True), strict=True):
        both = []
        for world in ("simulated", "live"):
            of_world = [whole_kernel.of(result, "world", world) for result in results]
            lists = [measured(result)[name] for result in of_world]
            values = [statistics.fmean(one[at][0] for one in lists) for at in range(len(MEASURES))]
            places = [on_the_way(result)[name] for result in of_world]
            waits = [statistics.fmean(one[at] for one in places) for at in range(len(WHERE))]
            both.append(whole_page.World(values, waits))
        worlds.append(both)
    late = max(whole_kernel.latest(result) for results in of_seeds for result in results)
    time_of_kernel = "virtual time" if where == "--lab" else f"real time on Linux {platform.release().split('-')[0]}"
    told = (
        f"Means of {seeds} seed{'s' if seeds > 1 else ''}, {duration} each, the kernel's in {time_of_kernel}: the "
        f"emulator gave the hosts 99 % of the packets of each link within {late:.0f} us. Each cell has the simulator's "
        f"number and the kernel's; what is more than {100 * whole_page.BAR:.0f} % apart is bold."
    )
    return [told, "", *whole_page.worlds(MEASURES, names, worlds)]


def simulated(suimon: Path, name: str, seeds: int) -> dict[str, Any]:
    """The result of a road under all its combinations."""
    file = SCENARIO
    if name != "whole":
        whole_kernel.FOLDER.mkdir(parents=True, exist_ok=True)
        write_traces(suimon, whole_kernel.FOLDER)
        file = whole_kernel.FOLDER / f"{name}.toml"
        file.write_text(scenario(name=name))
    command = [str(suimon), "run", str(file), "--json", "--no-files", "--set", f"seeds={seeds}"]
    found: dict[str, Any] = json.loads(run(command, "the road", os.environ))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"seeds (default: {SEEDS}; on a kernel 1)")
    parser.add_argument("--road", choices=["whole", *ROADS], default="whole", help="the road (default: whole)")
    parser.add_argument("--lab", action="store_true", help="run on a real kernel in virtual time, beside the simulator")
    parser.add_argument("--live", action="store_true", help="the same in real time; needs root and a calm machine")
    parser.add_argument("--only", action="append", metavar="PARTS", help="on a kernel: these parts, as 'fs-at + even'")
    parser.add_argument("--all", action="store_true", help="on a kernel: every combination")
    parser.add_argument("--duration", default="30s", help="on a kernel: of each run (default: 30s)")
    parser.add_argument("--write", action="store_true", help="write docs/whole.md and its picture")
    parser.add_argument("--write-scenario", action="store_true", help=f"write {SCENARIO.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.write_scenario:
        SCENARIO.write_text(scenario())
        return 0
    began = time.monotonic()
    try:
        if options.lab or options.live:
            known = [name for name, _ in setups("whole")]
            names = known if options.all else options.only or [TODAY, "fs-at", name_of(PARTS)]
            unknown = [name for name in names if name not in known]
            if unknown:
                parser.error(f"--only: no combination is called {unknown[0]!r}; accepted: {'; '.join(known)}")
            where = "--lab" if options.lab else "--live"
            lines = beside_kernel(options.suimon, where, names, options.seeds or 1, options.duration)
            print("\n".join(lines))
            if options.write:
                whole_page.write_worlds(lines)
            return 0
        result = simulated(options.suimon, options.road, options.seeds or SEEDS)
    except BenchError as error:
        print(f"whole: {error}", file=sys.stderr)
        return 1
    found = measured(result)
    estimates = {name: [Estimate.of(values) for values in lists] for name, lists in found.items()}
    ways = on_the_way(result)
    if options.road == "whole":
        effects = {part: [effect(found, part, at) for at in range(len(MEASURES))] for part in PARTS}
        lines = whole_page.tables(MEASURES, estimates, effects, ways)
    else:
        lines = [ROADS[options.road].told, "", *whole_page.results([*MEASURES, GAME], estimates)]
        lines += ["", *whole_page.on_the_way(ways)]
    print("\n".join(lines))
    print(f"\nwhole: {len(result['runs'])} runs in {time.monotonic() - began:.0f} s")
    if options.write and options.road == "whole":
        whole_page.write(options.suimon, SCENARIO, lines)
    elif options.write:
        whole_page.write_road(options.road, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
