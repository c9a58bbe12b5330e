#!/usr/bin/env python3
"""`suimon measure` beside irtt over the same emulated lines, at the same time: python3 bench/irtt.py

Each line is emulated by `suimon shell` in real time. irtt sends a packet every 20 ms, while `suimon measure` loads the
line and sends its own, so that both are in the same queue. It takes irtt (`apt install irtt`)."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from line import CASES, PAGE, Case, percentile
from measure import ROOT, BenchError
from page import write_between
from simulators import built

WORK = ROOT / "suimon-out" / "irtt"
NAMES = ["dsl", "cable", "shallow", "home", "codel", "fq-codel", "deep"]
# As the estimators: what is left out at the beginning of a load; and at both ends, since irtt began a moment before.
WARM_UP, EDGE_S = 0.3, 0.2
LIMIT_S = 200


def measured(case: Case, suimon: Path) -> None:
    folder = WORK / case.name
    folder.mkdir(parents=True, exist_ok=True)
    shell = [str(suimon), "shell", "--quiet", "--down", case.link(case.down), "--up", case.link(case.up)]
    shell += ["--queue", case.down.queue, "--up-queue", case.up.queue]
    # The server of irtt ends with the shell.
    shell += ["--server", f"sh -c 'irtt server > irtt.log & exec {suimon} measure --serve --log warn'", "--"]
    client = "sleep 1; irtt client -Q -i 20ms -d 40s -o irtt.json far > irtt.said & sleep 1; "
    client += f"{suimon} measure far --json --record record.json > line.json; kill -INT $!; wait"
    done = subprocess.run(
        [*shell, "sh", "-c", client], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if not (folder / "line.json").stat().st_size:
        raise BenchError(f"{case.name}: {done.stderr[-500:]}")


def row(case: Case) -> str:
    folder = WORK / case.name
    line = json.loads((folder / "line.json").read_text())
    record = json.loads((folder / "record.json").read_text())
    trips = json.loads((folder / "irtt.json").read_text())["round_trips"]
    sent = [trip["timestamps"]["client"]["send"]["monotonic"] / 1e9 for trip in trips]
    rtts = [trip["delay"].get("rtt") for trip in trips]
    # The first load is where round trips begin to be long in both; irtt's clock began a second and a moment earlier.
    idle_end = record["download"]["span"]["from_us"] / 1e6
    shift = sent[0] + 1.0 + EDGE_S / 2

    def within(from_s: float, to_s: float) -> list[float]:
        return [
            rtt / 1e6
            for at, rtt in zip(sent, rtts, strict=True)
            if rtt and from_s + EDGE_S <= at - shift < to_s - EDGE_S
        ]

    cells = [f"{line['idle']['rtt_ms']:.2f} / {percentile(within(0, idle_end), 0.5):.2f}"]
    for way in ("download", "upload"):
        span = record[way]["span"]
        begin, end = span["from_us"] / 1e6, span["to_us"] / 1e6
        beside = within(begin + WARM_UP * (end - begin), end)
        cells += [
            f"{line[way][key]:.1f} / {percentile(beside, q):.1f}"
            for key, q in (("rtt_p50_ms", 0.5), ("rtt_p95_ms", 0.95))
        ]
    return f"| {case.name} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--only", help="names of lines, apart by commas")
    parser.add_argument("--read", action="store_true", help="run nothing: compare what was measured")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    cases = {case.name: case for case in CASES}
    lines = [
        "| Line | Idle RTT, median, ms | Beside the download, median, ms | p95, ms "
        "| Beside the upload, median, ms | p95, ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in options.only.split(",") if options.only else NAMES:
        if not options.read:
            print(f"{name} ...", file=sys.stderr, flush=True)
            measured(cases[name], suimon)
        lines.append(row(cases[name]))
    text = "\n".join(lines)
    print(text)
    if options.write:
        write_between(PAGE, "irtt", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
