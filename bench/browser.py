#!/usr/bin/env python3
"""The page of `suimon measure --serve` in Chromium beside the command, over the same lines: python3 bench/browser.py

Each line is emulated by `suimon shell` in real time; the command measures first, then the page, on a screen of 390 or
1400 pixels. It takes Chromium, and playwright-core as `make setup` installs it."""

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line import CASES, PAGE, Case
from measure import ROOT, BenchError
from page import write_between
from simulators import built

WORK = ROOT / "suimon-out" / "browser"
NAMES = ["dsl", "cable", "shallow", "home", "codel", "fq-codel", "cake", "half", "deep", "lossy-little"]
WIDTHS = [390, 1400]
# Every kernel allows it in a network of its own.
CONTROL = "reno"
BAR = 0.10
LIMIT_S = 300
QUANTITIES = [
    ("Capacity, Mbit/s", "capacity_mbps"),
    ("Loaded RTT p50, ms", "rtt_p50_ms"),
    ("Loaded RTT p95, ms", "rtt_p95_ms"),
    ("Buffer, kB", "buffer"),
]


@dataclass(frozen=True)
class Row:
    """What the page and the command said of one direction, in the order of QUANTITIES; the idle round trip first."""

    name: str
    direction: str
    width: int
    pairs: list[tuple[float, float]]
    kinds: tuple[str, str]
    is_at_least: bool

    def misses(self) -> list[str]:
        names = ["idle", "capacity", "p50", "p95", *([] if self.is_at_least else ["buffer"])]
        said = [name for name, (page, command) in zip(names, self.pairs, strict=False) if abs(page / command - 1) > BAR]
        return said + (["kind"] if self.kinds[0] != self.kinds[1] else [])


def measured(case: Case, width: int, suimon: Path) -> None:
    folder = WORK / case.name
    folder.mkdir(parents=True, exist_ok=True)
    shell = [str(suimon), "shell", "--quiet", "--down", case.link(case.down), "--up", case.link(case.up)]
    # Of what a browser sends, its host chooses the congestion control.
    shell += ["--queue", case.down.queue, "--up-queue", case.up.queue, "--cc", CONTROL]
    shell += ["--server", f"{suimon} measure --serve --log warn", "--"]
    page = shlex.join(["node", str(ROOT / "bench" / "browser.mjs"), "http://far:7423/", str(width), "page"])
    # Hosts do not ask for ECN by themselves, as the shell lets them where a queue marks.
    client = f"sysctl -qw net.ipv4.tcp_ecn=2; sleep 1; {suimon} measure far --json > command.json; {page} > page.json"
    done = subprocess.run(
        [*shell, "sh", "-c", client], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise BenchError(f"{case.name}: {done.stderr[-500:]}")


def rows(case: Case, width: int) -> list[Row]:
    folder = WORK / case.name
    command: dict[str, Any] = json.loads((folder / "command.json").read_text())
    said = json.loads((folder / "page.json").read_text())
    if said["wrong"]:
        raise BenchError(f"{case.name}: the page: {said['wrong']}")
    page: dict[str, Any] = said["line"]

    def value(line: dict[str, Any], key: str) -> float:
        return float(line[key]["bytes"]) / 1e3 if key == "buffer" else float(line[key])

    return [
        Row(
            case.name,
            way,
            width,
            [(page["idle"]["rtt_ms"], command["idle"]["rtt_ms"])]
            + [(value(page[way], key), value(command[way], key)) for _, key in QUANTITIES],
            (page[way]["queue"], command[way]["queue"]),
            page[way]["buffer"]["is_at_least"] or command[way]["buffer"]["is_at_least"],
        )
        for way in ("download", "upload")
    ]


def table(found: list[Row]) -> str:
    head = ["Line", "Direction", "Screen, pixels", "Idle RTT, ms", *[name for name, _ in QUANTITIES], "Queue", "Misses"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in found:
        numbers = " | ".join(f"{page:.4g} / {command:.4g}" for page, command in row.pairs)
        least = " (at least)" if row.is_at_least else ""
        kinds = " / ".join(kind.replace("_", " ") for kind in row.kinds)
        lines.append(
            f"| {row.name} | {row.direction} | {row.width} | {numbers}{least} | {kinds} "
            f"| {', '.join(row.misses()) or '-'} |"
        )
    total = len(found)
    held = {name: sum(name not in row.misses() for row in found) for name in ("idle", "capacity", "p50", "p95", "kind")}
    known = [row for row in found if not row.is_at_least]
    buffers = sum("buffer" not in row.misses() for row in known)
    return "\n".join(lines) + (
        f"\n\nWithin 10 % of the command: idle round trip {held['idle']} of {total}, "
        f"capacity {held['capacity']} of {total}, loaded median {held['p50']} of {total}, "
        f"loaded p95 {held['p95']} of {total}, buffer {buffers} of {len(known)}; "
        f"the same kind of queue: {held['kind']} of {total}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--only", help="names of lines, apart by commas")
    parser.add_argument("--read", action="store_true", help="run nothing: compare what was measured")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    cases = {case.name: case for case in CASES}
    found = []
    for nth, name in enumerate(options.only.split(",") if options.only else NAMES):
        width = WIDTHS[nth % len(WIDTHS)]
        if not options.read:
            print(f"{name} ...", file=sys.stderr, flush=True)
            measured(cases[name], width, suimon)
        if (WORK / name / "page.json").exists():
            found += rows(cases[name], width)
    text = table(found)
    print(text)
    if options.write:
        write_between(PAGE, "browser", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
