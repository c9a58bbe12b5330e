"""Paper 1's transfers on the kernel, in virtual time: python3 bench/paper_on_kernel.py [--write]

Runs `suimon paper fs-at --lab --json`, prints its tables, and with `--write` puts them into papers/fs-at/README.md and
docs/kernel.md. Takes half an hour of processor time, in as many guests as this machine has cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import ROOT, BenchError, run
from page import write_between
from simulators import built

PAPER, KERNEL = ROOT / "papers" / "fs-at" / "README.md", ROOT / "docs" / "kernel.md"
# `suimon paper` ends with it where a bar is missed, and has printed all by then.
MISSED = 1


def measured(suimon: Path, seed: int) -> dict[str, Any]:
    command = [str(suimon), "paper", "fs-at", f"--lab={seed}", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode not in (0, MISSED):
        raise BenchError(f"suimon paper: exit code {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def transfers(told: dict[str, Any]) -> list[str]:
    lines = [
        "| link | sender | kbit/s: kernel | simulator | mean backlog, packets: kernel | simulator "
        "| 95 % waited: kernel | simulator | agree |",
        "|" + " --- |" * 9,
    ]
    last = ""
    for row in told["rows"]:
        both = [row["kernel"], row["simulator"]]
        agree = [name for name in ("throughput", "backlog") if row[f"{name}_agrees"]]
        agreement = "both" if len(agree) == 2 else "".join(agree) or "neither"
        cells = [row["link"] if row["link"] != last else "", row["cc"]]
        cells += [f"{one['throughput_kbps']:.0f}" for one in both]
        cells += [f"{one['backlog_mean_packets']:.1f}" for one in both]
        cells += [f"{one['delay_p95_ms']:.0f} ms" for one in both]
        lines.append(f"| {' | '.join([*cells, agreement])} |")
        last = row["link"]
    lines += ["", "| bar, at 1 Mbit/s | | kernel | simulator |", "| --- | --- | --- | --- |"]
    for bar in told["bars"]:
        verdict = " (missed)" if bar["holds"] is False else ""
        lines.append(
            f"| {bar['claim']} | {bar['bar']} | {100 * bar['kernel']:.1f} %{verdict} | {100 * bar['simulator']:.1f} % |"
        )
    return lines


def programs(told: dict[str, Any]) -> list[str]:
    lines = [
        "| link | sender | iperf3: kbit/s | ping: median | 95 % | HTTP: kbit/s | ping: median | 95 % |",
        "|" + " --- |" * 8,
    ]
    of = {(row["program"], row["link"], row["cc"]): row for row in told["programs"]}
    last = ""
    for link, cc in dict.fromkeys((row["link"], row["cc"]) for row in told["programs"]):
        cells = [link if link != last else "", cc]
        for program in ("iperf3", "HTTP"):
            row = of[program, link, cc]
            cells += [
                f"{row['throughput_kbps']:.0f}",
                *(f"{row[ping]:.0f} ms" for ping in ("ping_p50_ms", "ping_p95_ms")),
            ]
        lines.append(f"| {' | '.join(cells)} |")
        last = link
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the kernel's random numbers (default: 1)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument(
        "--from", dest="results", type=Path, help="what `suimon paper fs-at --lab --json` printed before"
    )
    parser.add_argument("--write", action="store_true", help="write both pages")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    told = json.loads(options.results.read_text()) if options.results else measured(suimon, options.seed)
    kernel = run([str(suimon), "lab", "--", "uname", "-r"], "suimon lab").strip()
    tables = [(PAPER, "transfers", transfers(told))]
    if not told["left_out"]:
        tables.append((KERNEL, "programs", programs(told)))
    for page, name, lines in tables:
        text = "\n".join([f"Kernel {kernel}, seed {options.seed}.", "", *lines])
        print(text, end="\n\n")
        if options.write:
            write_between(page, name, text)
    if told["left_out"]:
        raise BenchError(f"no table of programs: {'; '.join(told['left_out'])}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"paper_on_kernel: {error}", file=sys.stderr)
        sys.exit(1)
