#!/usr/bin/env python3
"""`suimon measure` beside crusader and flent, one after the other over the same emulated lines: python3 bench/tools.py

Each line is emulated by `suimon shell` in real time. All tools load it by four connections of Reno for ten seconds each
way. A tool that is not there is left out: crusader is built from https://github.com/Zoxc/crusader (the crate of this
name is a placeholder), flent is a package of most distributions, and takes netperf and fping."""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line import CASES, PAGE, Case, percentile
from measure import ROOT, BenchError
from page import write_between
from simulators import built

WORK = ROOT / "suimon-out" / "tools"
# netperf tells nothing of a send that waits for seconds, as on slower uploads.
NAMES = ["cable", "codel", "fq-codel"]
# As the estimators of suimon: what is left out at the beginning of a load.
WARM_UP = 0.3
LOAD_S, FLOWS, IDLE_S = 10, 4, 3
LIMIT_S = 200
CONTROL = "reno"
Series = list[tuple[float, float]]


@dataclass(frozen=True)
class Said:
    """What a tool says of one direction: Mbit/s, and milliseconds idle and beside the load."""

    mbps: float
    idle_ms: float
    p50_ms: float
    p95_ms: float


def of_series(moved: Series, pings: Series, begin: float, idle_end: float) -> Said:
    """From megabits that moved and round trips in milliseconds, each with its time in seconds, and the load's begin."""
    start, end = begin + WARM_UP * LOAD_S, begin + LOAD_S
    megabits = sum(amount for at, amount in moved if start <= at < end)
    beside = [rtt for at, rtt in pings if start <= at < end]
    idle = [rtt for at, rtt in pings if at < idle_end]
    mbps = megabits / (end - start)
    return Said(mbps, percentile(idle, 0.5), percentile(beside, 0.5), percentile(beside, 0.95))


def suimon_said(folder: Path, way: str) -> Said:
    line = json.loads((folder / "line.json").read_text())
    return Said(line[way]["capacity_mbps"], line["idle"]["rtt_ms"], line[way]["rtt_p50_ms"], line[way]["rtt_p95_ms"])


def seconds(time: dict[str, int]) -> float:
    return time["secs"] + time["nanos"] / 1e9


def crusader_said(folder: Path, way: str) -> Said:
    result: dict[str, Any] = json.loads((folder / "crusader.json").read_text())
    pings = [
        (seconds(ping["sent"]), 1e3 * seconds(ping["latency"]["total"]))
        for ping in result["pings"]
        if ping["latency"] and ping["latency"]["total"]
    ]
    tests = {test["kind"].lower(): test for test in result["test_data"]}
    group = next(one for one in result["stream_groups"] if one["download"] == (way == "download"))
    moved = []
    for stream in group["streams"]:
        points = [(seconds(point["time"]), point["bytes"]) for point in stream["data"]]
        moved += [(at, (now - before) * 8 / 1e6) for (_, before), (at, now) in zip(points, points[1:], strict=False)]
    idle_end = min(seconds(test["start"]) for test in tests.values())
    return of_series(moved, pings, seconds(tests[way]["start"]), idle_end)


def flent_said(folder: Path, way: str) -> Said:
    (file,) = folder.glob("tcp_ndown-*" if way == "download" else "tcp_nup-*")
    with gzip.open(file) as text:
        raw: dict[str, list[dict[str, float]]] = json.load(text)["raw_values"]
    pings = [(ping["t"], ping["val"]) for ping in raw["Ping (ms) ICMP"]]
    loads = [sample for name, samples in raw.items() if f"TCP {way}::" in name for sample in samples if "dur" in sample]
    begin = min(sample["t"] - sample["dur"] for sample in loads)
    return of_series([(one["t"], one["val"] * one["dur"]) for one in loads], pings, begin, begin - 1)


TOOLS = {"suimon": suimon_said, "crusader": crusader_said, "flent": flent_said}


def commands(tool: str, suimon: Path) -> tuple[str, str]:
    """The server of a tool, and its client."""
    crusader = f"crusader test far --download --upload --streams {FLOWS} --load-duration {LOAD_S}"
    flent = f"flent -H far -l {LOAD_S} -s 0.02 -D ."
    return {
        "suimon": (
            f"{suimon} measure --serve --log warn",
            f"{suimon} measure far --flows {FLOWS} --load {LOAD_S}s --json > line.json",
        ),
        "crusader": (
            "crusader serve",
            f"{crusader} --grace-duration {IDLE_S} --latency-sample-interval 20 && "
            "crusader export --force --output crusader.json crusader-results/*.crr",
        ),
        "flent": (
            "netserver -D",
            f"{flent} tcp_ndown --test-parameter download_streams={FLOWS} && "
            f"{flent} tcp_nup --test-parameter upload_streams={FLOWS}",
        ),
    }[tool]


def measured(case: Case, tool: str, suimon: Path) -> None:
    folder = WORK / case.name
    folder.mkdir(parents=True, exist_ok=True)
    # Both tools add to the files of an earlier run.
    for old in folder.glob({"crusader": "crusader-results/*", "flent": "tcp_n*"}.get(tool, "line.json")):
        old.unlink()
    server, client = commands(tool, suimon)
    shell = [str(suimon), "shell", "--quiet", "--down", case.link(case.down), "--up", case.link(case.up)]
    shell += ["--queue", case.down.queue, "--up-queue", case.up.queue, "--cc", CONTROL, "--server"]
    shell += [f"sh -c 'sysctl -qw net.ipv4.tcp_congestion_control={CONTROL}; exec {server}'", "--"]
    done = subprocess.run(
        [*shell, "sh", "-c", f"sleep 2; {client}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"{case.name}, {tool}: {(done.stdout + done.stderr)[-500:]}")


def available() -> list[str]:
    needed = {"suimon": [], "crusader": ["crusader"], "flent": ["flent", "netserver", "netperf", "fping"]}
    return [tool for tool, programs in needed.items() if all(shutil.which(program) for program in programs)]


def table(names: list[str], tools: list[str]) -> str:
    cases = {case.name: case for case in CASES}
    head = ["Line", "Direction", f"Rate, Mbit/s: {', '.join(tools)}; the line's", "Idle RTT, ms", "Loaded RTT p50, ms"]
    head.append("Loaded RTT p95, ms")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name in names:
        for way in ("download", "upload"):
            said = [TOOLS[tool](WORK / name, way) for tool in tools]
            truth = (cases[name].down if way == "download" else cases[name].up).shown()
            cells = [f"{' / '.join(f'{one.mbps:.2f}' for one in said)} ({truth})"]
            cells += [" / ".join(f"{getattr(one, key):.1f}" for one in said) for key in ("idle_ms", "p50_ms", "p95_ms")]
            lines.append(f"| {name} | {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--only", help="names of lines, apart by commas")
    parser.add_argument("--tools", help=f"which of {', '.join(TOOLS)}, apart by commas [default: those that are there]")
    parser.add_argument("--read", action="store_true", help="run nothing: compare what was measured")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    tools = options.tools.split(",") if options.tools else available()
    cases = {case.name: case for case in CASES}
    names = options.only.split(",") if options.only else NAMES
    for name, tool in [] if options.read else [(name, tool) for name in names for tool in tools]:
        print(f"{name}, {tool} ...", file=sys.stderr, flush=True)
        measured(cases[name], tool, suimon)
    text = table(names, tools)
    print(text)
    if options.write:
        write_between(PAGE, "tools", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
