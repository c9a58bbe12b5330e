#!/usr/bin/env python3
"""What `suimon measure --rpm` tells, beside the emulator's log of the same packets: python3 bench/rpm.py

Each line is emulated by `suimon shell` in `suimon lab` (virtual time), or in real time on this machine by `--live`. The
truth is computed packet by packet: what the first packets of each new connection waited there and back, and what
packets of the load waited. A dagger in the table marks real time."""

import argparse
import csv
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line import CASES, WORK, WORLD, Case, Way
from measure import BenchError, run
from page import write_between
from simulators import built

FOLDER = WORK.parent / "rpm"
PAGE = WORK.parents[1] / "docs" / "guides" / "measure.md"
NAMES = ["dsl", "cable", "shallow", "home", "codel", "fq-codel", "cake", "half", "deep", "pie"]
BAR = 0.05
TRIMMED = 0.95
LAST_US = 4e6
# A guest takes minutes alone, and ten times as long beside other work.
LIMIT_S = 3600
# Bytes of a request at least, and of a full packet; packets of a connection that is no load.
REQUEST, FULL, SHORT = 90, 1000, 40
COLUMNS = ["time_s", "link", "packet", "event", "waited_us", "late_us", "marked", "size_bytes", "flow"]


@dataclass(frozen=True)
class Row:
    """What was told of one direction, and the truth."""

    name: str
    direction: str
    rpm: tuple[float, float]
    tcp: tuple[float, float]
    http: tuple[float, float]
    load: tuple[float, float]

    def miss(self) -> bool:
        return abs(self.rpm[0] / self.rpm[1] - 1) > BAR


def trimmed_mean(values: list[float]) -> float:
    kept = sorted(values)[: -(-int(len(values) * TRIMMED * 100) // 100)]
    return sum(kept) / len(kept)


def measured(case: Case, suimon: Path, in_lab: bool) -> None:
    folder = FOLDER / case.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("record.json", "log.csv", "log"):
        (folder / name).unlink(missing_ok=True)
    program = "suimon" if in_lab else str(suimon)
    shell = [program, "shell", "--down", case.link(case.down), "--up", case.link(case.up), "--quiet", "--log", "log"]
    shell += ["--queue", case.down.queue, "--up-queue", case.up.queue]
    shell += ["--server", f"{program} measure --serve --log warn", "--"]
    client = f"sleep 1; {program} measure far --rpm --record record.json > said"
    script = "mkfifo log; grep -E 'sent|size' < log > log.csv &\n"
    script += f"{shlex.join([*shell, 'sh', '-c', client])}\n: <> log; wait; rm log\n"
    (folder / "run.sh").write_text(script)
    command = [str(suimon), "lab", "--with-program", "mkfifo", "--"] if in_lab else []
    (folder / WORLD).write_text("virtual" if in_lab else "real")
    done = subprocess.run(
        [*command, "sh", "run.sh"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if not (folder / "record.json").exists():
        raise BenchError(f"{case.name}: no measurement: {done.stderr[-500:]}")


def wire_ms(way: Way, size: float) -> float:
    return size * 8 / float(way.rate) / 1e3


def of_connection(case: Case, packets: list[dict[str, str]], least: int) -> float | None:
    """The round trip of a connection's first packets with `least` bytes, each way: the line's, and what they waited."""
    total = case.rtt_ms
    for link, way in (("up", case.up), ("down", case.down)):
        first = next((row for row in packets if row["link"] == link and int(row["size_bytes"]) >= least), None)
        if first is None:
            return None
        total += float(first["waited_us"]) / 1e3 + wire_ms(way, float(first["size_bytes"]))
    return total


def rows(case: Case, suimon: Path) -> list[Row]:
    folder = FOLDER / case.name
    said = run([str(suimon), "measure", "--read", str(folder / "record.json"), "--json"], "suimon measure")
    line: dict[str, Any] = json.loads(said)
    record = json.loads((folder / "record.json").read_text())
    with (folder / "log.csv").open() as log:
        every = csv.DictReader(log, COLUMNS)
        packets = [row for row in every if row["event"] == "sent" and row["link"] in ("down", "up")]
    # The emulator's clock and the client's: the first probe.
    first = next(float(row["time_s"]) for row in packets if row["link"] == "up" and "udp" in row["flow"])
    start = record["probes"][0]["sent_us"]
    connections: dict[str, list[dict[str, str]]] = {}
    for row in packets:
        if row["flow"].startswith("tcp"):
            ends = row["flow"].removeprefix("tcp ").split(" > ")
            connections.setdefault(ends[row["link"] == "down"], []).append(row)

    def at_us(row: dict[str, str]) -> float:
        return (float(row["time_s"]) - first) * 1e6 + float(start)

    result = []
    for direction, way, link in (("download", case.down, "down"), ("upload", case.up, "up")):
        told, span = line[direction]["responsiveness"], record[direction]["span"]
        begin, end = span["to_us"] - LAST_US, span["to_us"]
        # A connection beside the load begins in its last seconds, and is short.
        beside = [of for of in connections.values() if begin <= at_us(of[0]) < end and len(of) < SHORT]
        tcp = [took for of in beside if (took := of_connection(case, of, 0)) is not None]
        http = [took for of in beside if (took := of_connection(case, of, REQUEST)) is not None]
        load = [
            case.rtt_ms + float(row["waited_us"]) / 1e3 + wire_ms(way, float(row["size_bytes"]))
            for row in packets
            if row["link"] == link and int(row["size_bytes"]) >= FULL and begin <= at_us(row) < end
        ]
        tcp_f, http_f, http_l = (trimmed_mean(values) for values in (tcp, http, load))
        truth = (60_000 / ((tcp_f + http_f) / 2) + 60_000 / http_l) / 2
        truths = (("tcp_f", tcp_f), ("http_f", http_f), ("http_l", http_l))
        pairs = [(told[f"{name}_ms"], true) for name, true in truths]
        result.append(Row(case.name, direction, (told["rpm"], truth), pairs[0], pairs[1], pairs[2]))
    return result


def mark(name: str) -> str:
    """The line's name, with a dagger where it was measured in real time."""
    world = FOLDER / name / WORLD
    return f"{name} †" if world.exists() and world.read_text() == "real" else name


def table(found: list[Row]) -> str:
    lines = [
        "| Line | Direction | RPM | Connecting, ms | Request, ms | Round trip of the load, ms | Miss |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {mark(row.name)} | {row.direction} | {row.rpm[0]:.0f} / {row.rpm[1]:.0f} "
        f"| {row.tcp[0]:.1f} / {row.tcp[1]:.1f} | {row.http[0]:.1f} / {row.http[1]:.1f} "
        f"| {row.load[0]:.1f} / {row.load[1]:.1f} "
        f"| {'yes' if row.miss() else '-'} |"
        for row in found
    ]
    held = sum(not row.miss() for row in found)
    return "\n".join(lines) + f"\n\nWithin the bar (5 %): {held} of {len(found)}."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--only", help="names of lines, apart by commas")
    parser.add_argument("--live", action="store_true", help="in real time on this machine")
    parser.add_argument("--read", action="store_true", help="run nothing: compare what was recorded")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    cases = {case.name: case for case in CASES}
    found = []
    for name in options.only.split(",") if options.only else NAMES:
        if not options.read:
            print(f"{name} ...", file=sys.stderr, flush=True)
            measured(cases[name], suimon, not options.live)
        if (FOLDER / name / "record.json").exists():
            found += rows(cases[name], suimon)
    text = table(found)
    print(text)
    if options.write:
        write_between(PAGE, "responsiveness", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
