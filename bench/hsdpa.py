"""Why no one setting of the HSDPA model has all of Fig 10 of FS-AT's paper: python3 bench/hsdpa.py

Reno's average over papers/fs-at/hsdpa.toml at -5 dB, beside cells that the same parameter decides, for three values.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from measure import ROOT, WORK, run
from simulators import built

SCENARIO = ROOT / "papers" / "fs-at" / "hsdpa.toml"
# Fig 10's averages in kbit/s.
PRINTED = {
    ("VA30", "15dB"): 1585.0,
    ("VA30", "-5dB"): 456.1,
    ("PA3", "-5dB"): 519.6,
    ("ST", "0dB"): 1271.3,
    ("ST", "-5dB"): 522.8,
}
# The parameter, its values with the model's own first, and the cells.
SCANS = (
    ("self_interference", ("28%", "14%", "0%"), (("VA30", "15dB"), ("VA30", "-5dB"))),
    ("power", ("-0.95dB", "-1.15dB", "-1.35dB"), (("PA3", "-5dB"), ("ST", "0dB"), ("ST", "-5dB"), ("VA30", "-5dB"))),
)


def average(binary: Path, profile: str, geometry: str, key: str, value: str, seeds: int) -> float:
    """Mean over seeds of the mean rate of ten segments, in kbit/s."""
    folder = WORK / "hsdpa"
    folder.mkdir(parents=True, exist_ok=True)
    scenario = WORK / "hsdpa.toml"
    scenario.write_text(SCENARIO.read_text().split("[[matrix]]")[0])
    settings = {
        "seeds": str(seeds),
        "link.cell.hsdpa.profile": profile,
        "link.cell.hsdpa.geometry": geometry,
        f"link.cell.hsdpa.{key}": value,
    }
    options = [part for name, setting in settings.items() for part in ("--set", f"{name}={setting}")]
    run([str(binary), "run", str(scenario), *options, "--out", str(folder), "--force"], "suimon")
    with (folder / "flows.csv").open() as table:
        rates = [float(row["rate_mean_bps"]) for row in csv.DictReader(table)]
    return sum(rates) / len(rates) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds (default: 5)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    for key, values, cells in SCANS:
        for value in values:
            averages = [(cell, average(options.suimon, *cell, key, value, options.seeds)) for cell in cells]
            texts = [
                f"{profile} {geometry} {got:.0f} ({got / PRINTED[profile, geometry] - 1:+.1%})"
                for (profile, geometry), got in averages
            ]
            print(f"{key} {value:8} " + ", ".join(texts))


if __name__ == "__main__":
    main()
