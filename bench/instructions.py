"""Fails where Suimon takes more instructions per packet than it did.

    python3 bench/instructions.py [--profile dev|release|dist] [--update]

Instructions rather than time, since they do not depend on what else the machine does. They do depend on
the compiler and on the processor's kind, so a baseline from another rustc or architecture is not compared.
Each profile of Cargo.toml has its own baseline.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from pathlib import Path

from measure import HERE, callgrind, version
from scenarios import CASES, Case
from simulators import Suimon, built

BASELINE = HERE / "instructions.json"
BOUND = 1.05
# So many simulated seconds, from when all flows have started.
SECONDS = {"B1": 2.0, "B2": 20.0, "B3": 0.2}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="take what is measured as the new baseline")
    parser.add_argument("--profile", choices=["dev", "release", "dist"], default="dist", help="how it was built")
    parser.add_argument("--suimon", type=Path, help="the program to measure [default: as the profile builds it]")
    options = parser.parse_args()
    suimon = Suimon(options.suimon or built(options.profile))
    reason = suimon.prepare()
    if reason is not None:
        print(f"instructions: suimon is {reason}", file=sys.stderr)
        return 1
    if not shutil.which("valgrind"):
        print("instructions: skipped: valgrind is not installed")
        return 0
    built_by = {"rustc": version(["rustc", "--version"], r"rustc (.+)"), "machine": platform.machine()}
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    baselines = known["per_packet"] if known.get("built_by") == built_by else {}
    if not options.update and options.profile not in baselines:
        there = known.get("built_by")
        print(f"instructions: skipped: no baseline of {options.profile} by {built_by}; others are by {there}")
        return 0
    chosen = [case for case in CASES if case.name in SECONDS]
    counted = {case.name: _per_packet(suimon, case) for case in chosen}
    if options.update:
        baselines = {**baselines, options.profile: counted}
        BASELINE.write_text(json.dumps({"built_by": built_by, "per_packet": baselines}, indent=2) + "\n")
        print(f"instructions: baseline of {options.profile} is now {counted}")
        return 0
    grown = False
    for name, now in counted.items():
        before = baselines[options.profile][name]
        worse = now > before * BOUND
        grown |= worse
        print(
            f"instructions: {name}: {now:.0f} a packet, {now / before - 1:+.2%}{' TOO MANY' if worse else ''}"
        )
    if grown:
        print(f"instructions: more than {BOUND - 1:.0%} above bench/instructions.json", file=sys.stderr)
    return int(grown)


def _per_packet(suimon: Suimon, case: Case) -> float:
    shorter = case.last_start + SECONDS[case.name] / 2
    longer = shorter + SECONDS[case.name]
    packets = suimon.count(case, longer).packets - suimon.count(case, shorter).packets
    instructions = callgrind(suimon.command(case, longer)) - callgrind(suimon.command(case, shorter))
    return round(instructions / packets, 1)


if __name__ == "__main__":
    sys.exit(main())
