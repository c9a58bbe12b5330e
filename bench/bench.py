"""Measures Suimon beside ns-2 and ns-3: the same scenarios, in turn, on the same machine."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from alone import measure_alone
from compare import compare
from drawing import draw
from growth import measure_growth
from measure import ROOT
from report import render, write
from scenarios import CASES, NS2, NS3, SIMULATORS, SUIMON
from simulators import Ns2, Ns3, Simulator, Suimon, built, install

PAGE = ROOT / "docs" / "performance.md"
DRAWING = ROOT / "docs" / "performance.svg"
ROUNDS = {SUIMON: 7, NS2: 7, NS3: 3}
QUICK_ROUNDS = {SUIMON: 2, NS2: 2, NS3: 1}
# Probes are paid for per sample, so by few flows with many packets and by many with few.
PROBED = ("B1", "B3")


def main() -> int:
    options = _options()
    suimon = Suimon(options.suimon)
    reason = suimon.prepare()
    if reason is not None:
        print(f"bench: suimon is {reason}", file=sys.stderr)
        return 1
    simulators: list[Simulator] = [suimon, Ns2(), Ns3()]
    simulators = [one for one in simulators if options.only in (None, one.name) or one is suimon]
    if options.install:
        install(simulators)
    cases = [case.quick() if options.quick else case for case in CASES]
    chosen = [case for case in cases if not options.scenario or case.name in options.scenario]
    compared = []
    for case in chosen:
        print(f"bench: {case.name}: {case.title}", file=sys.stderr, flush=True)
        compared.append(compare(case, simulators, QUICK_ROUNDS if options.quick else ROUNDS))
    alone, growth = None, []
    if not options.scenario:
        print("bench: starting, memory, probes", file=sys.stderr, flush=True)
        probed = [case for case in cases if case.name in PROBED]
        alone = measure_alone(suimon, probed, quick=options.quick)
        print("bench: growth", file=sys.stderr, flush=True)
        growth = measure_growth(suimon, quick=options.quick)
    text = render(compared, alone, growth, simulators, shlex.join(["python3", *sys.argv]))
    print(text)
    if options.scenario or options.only or options.quick:
        print("\nPart of the measurements: docs/performance.md stays as it is.", file=sys.stderr)
    else:
        write(PAGE, text)
        DRAWING.write_text(draw(growth))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer runs: under two minutes")
    parser.add_argument("--only", choices=SIMULATORS, help="this simulator, beside Suimon")
    names = [case.name for case in CASES]
    parser.add_argument("--scenario", choices=names, action="append", help="this scenario; may be repeated")
    parser.add_argument("--install", action="store_true", help="install missing peers by apt-get")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to measure")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
