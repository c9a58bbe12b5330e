"""How long a run takes under each queue discipline: python3 bench/disciplines.py [--rounds N]

Two senders share 500 Mbit/s for 60 simulated seconds (papers/dpd-qt/speed.toml). Prints the processor seconds
of the quickest of N runs, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from simulators import built

SCENARIO = Path(__file__).resolve().parent.parent / "papers" / "dpd-qt" / "speed.toml"
DISCIPLINES = ["droptail", "red", "dpd", "dpd-qt", "even", "fq-codel", "cake"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to measure")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for discipline in DISCIPLINES:
        seconds = min(_seconds(options.suimon, discipline) for _ in range(options.rounds))
        print(f"{discipline:10} {seconds:5.2f} s")


def _seconds(suimon: Path, discipline: str) -> float:
    """Processor seconds of one run."""
    queue = f"link.bottleneck.queue={discipline}"
    command: list[str | Path] = [suimon, "run", SCENARIO, "--no-files", "--set", queue]
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


if __name__ == "__main__":
    main()
