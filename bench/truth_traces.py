"""The kernel's senders over links that vary, beside the simulator: python3 bench/truth_traces.py [--write]

Each cell is a download over a trace, by `suimon run` in the simulator and the same with `--lab`: the kernel's TCP in
virtual time, over an emulated link. Each seed starts it at another time. Three traces are made by `suimon trace
generate`; recordings are run where they lie beside the project. The kernel's results stay in target/bench, and the same
scenario takes them again. `--write` writes docs/truth.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from guest_link import Measure, Tally
from measure import ROOT, WORK, BenchError, run
from page import write_between
from simulators import built

PAGE = ROOT / "docs" / "truth.md"
RECORDINGS = ROOT.parent / "shared" / "traces"
GENERATED = ("3g-driving", "lte-driving", "lte-walking")
RECORDED = ("TMobile-UMTS-driving.down", "Verizon-LTE-short.down", "ATT-LTE-driving-2016.up")
# Each as the simulator names it; the kernel's are reno, cubic, bbr, vegas and westwood.
SENDERS = ("reno", "cubic-linux", "bbr", "vegas-linux", "westwood")
SECONDS, SEED = 30, 7


def traces(suimon: Path) -> list[Path]:
    """Those that are made here, and the recordings that are there."""
    folder = WORK / "truth-traces"
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in GENERATED:
        made.append(folder / f"{name}.trace")
        made[-1].write_text(run([str(suimon), "trace", "generate", "--like", name, "--seed", str(SEED)], name))
    return [*made, *(path for name in RECORDED if (path := RECORDINGS / name).exists())]


# The flow begins within the trace's first tenth of a second, and never with it: the simulator's first packet would find
# an opportunity that comes at the trace's beginning, which the kernel's comes too late for.
SCENARIO = """name = "{name}"
duration = "{seconds}s"
seeds = {seeds}

[[link]]
name = "bottleneck"
between = ["sender", "receiver"]
trace = "{trace}"
delay = "20ms"
buffer = "100packets"
[link.reverse]
rate = "unlimited"

[[flow]]
name = "flow"
from = "sender"
to = "receiver"
start = ["1ms", "100ms"]

[[matrix]]
name = "cc"
set = "flow.flow.cc"
values = {senders}
"""


def scenario(trace: Path, seeds: int) -> Path:
    """Every sender over a trace, with as many seeds."""
    file = WORK / "truth-traces" / f"{trace.stem}.toml"
    setting = {"name": trace.stem, "trace": trace, "seconds": SECONDS, "seeds": seeds}
    file.write_text(SCENARIO.format(senders=json.dumps(SENDERS), **setting))
    return file


def runs(suimon: Path, file: Path, *options: str) -> str:
    """Every sender's runs of a scenario, as JSON."""
    return run([str(suimon), "run", str(file), "--json", "--no-files", *options], file.stem)


def in_kernel(suimon: Path, file: Path) -> str:
    """The same in the kernel. The record of just this scenario serves where there is one."""
    record, of = file.with_suffix(".kernel.json"), file.with_suffix(".kernel.toml")
    if not (record.exists() and of.exists() and of.read_text() == file.read_text()):
        of.unlink(missing_ok=True)
        record.write_text(runs(suimon, file, "--lab"))
        of.write_text(file.read_text())
    return record.read_text()


def by_sender(results: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(results)["runs"]:
        found.setdefault(one["cc"], []).append(one)
    return found


def measures(ours: list[dict[str, Any]], kernel: list[dict[str, Any]]) -> list[Measure]:
    def beside(name: str, column: str, scale: float, bound: float, digits: int) -> Measure:
        means = [sum(float(one[column]) for one in found) / len(found) / scale for found in (ours, kernel)]
        return Measure(name, means[0], means[1], bound, digits, count=column == "packets_lost")

    return [
        beside("goodput", "goodput_bps", 1e6, 0.05, 2),
        beside("backlog", "backlog_mean_bytes", 1e3, 0.10, 1),
        beside("p95", "delay_p95_ms", 1, 0.10, 0),
        beside("drops", "packets_lost", 1, 0.20, 0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds of both (default: 1)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    lines = [
        "| Link | Sender | Goodput, Mbit/s | Backlog, kB | p95, ms | Drops |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    tally = Tally()
    for trace in traces(suimon):
        file = scenario(trace, options.seeds)
        ours, kernel = by_sender(runs(suimon, file)), by_sender(in_kernel(suimon, file))
        for sender in ours:
            lines.append(tally.row([trace.stem, sender], measures(ours[sender], kernel[sender])))
            print(lines[-1], flush=True)
    print(f"\ntruth_traces: {tally.text}")
    if options.write:
        write_between(PAGE, "traces", "\n".join([f"Seeds: {options.seeds}. **{tally.text}.**", "", *lines]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"truth_traces: {error}", file=sys.stderr)
        sys.exit(1)
