#!/usr/bin/env python3
"""Draws the README's picture from the demo's cellular run.

usage: scripts/picture.py SUIMON PICTURE.svg
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

SCENARIO = "scenarios/demo-cellular.toml"
DRAWN = ["cubic", "drs", "vegas", "fs-at"]
"""Senders whose delay is drawn over time, the longest queues first, so that short ones stay on top."""

WIDTH, HEIGHT = 900, 484
INK, SOFT, LINES = "#17202b", "#5b6877", "#e3e7ec"
LEFT, RIGHT = 56, 20


def read(command: list[str]) -> Any:
    """What a command prints as JSON."""
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def text(x: float, y: float, content: str, anchor: str = "start", colour: str = INK, style: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}" {style}>{escape(content)}</text>'


def delays(samples: list[dict[str, Any]], colours: dict[str, str]) -> list[str]:
    """Queueing delay over time."""
    top, bottom = 80, 242
    longest = max(sample["time_s"] for sample in samples)
    highest = 3.0
    across = (WIDTH - LEFT - RIGHT) / longest

    def y_of(seconds: float) -> float:
        return bottom - seconds / highest * (bottom - top)

    parts = [text(LEFT - 36, top - 18, "Queueing delay over time (s)", style='font-weight="600"')]
    for seconds in range(4):
        y = y_of(seconds)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LINES}"/>')
        parts.append(text(LEFT - 8, y + 4, str(seconds), "end", SOFT))
    for seconds in range(0, int(longest) + 1, 20):
        parts.append(text(LEFT + seconds * across, bottom + 18, f"{seconds} s", "middle", SOFT))
    for name in DRAWN:
        path = ""
        command = "M"
        for sample in samples:
            if sample["cc"] != name:
                continue
            # No packet left in that interval: no delay was seen.
            if sample["delay_ms"] is None:
                command = "M"
                continue
            x = LEFT + sample["time_s"] * across
            path += f"{command}{x:.1f} {y_of(min(sample['delay_ms'] / 1e3, highest)):.1f}"
            command = "L"
        parts.append(f'<path d="{path}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>')
    x = 330.0
    for name in DRAWN:
        parts.append(f'<rect x="{x}" y="{top - 24}" width="18" height="4" rx="2" fill="{colours[name]}"/>')
        parts.append(text(x + 24, top - 18, name))
        x += 36 + 9 * len(name) + 20
    return parts


def bars(runs: list[dict[str, Any]], colours: dict[str, str]) -> list[str]:
    """Throughput and delay of each sender."""
    top, row = 312, 32
    columns = [
        ("Goodput (Mbit/s)", 96, "goodput_bps", 1e6, 2),
        ("Queueing delay, 95th percentile (ms)", 480, "delay_p95_ms", 1, 0),
    ]
    width = 260
    parts = []
    for title, x, key, unit, decimals in columns:
        parts.append(text(x, top - 14, title, style='font-weight="600"'))
        largest = max(run[key] for run in runs)
        for place, run in enumerate(runs):
            y = top + place * row
            length = run[key] / largest * width
            colour = colours[run["cc"]]
            parts.append(f'<rect x="{x}" y="{y}" width="{length:.1f}" height="20" rx="3" fill="{colour}"/>')
            parts.append(text(x + length + 8, y + 15, f"{run[key] / unit:.{decimals}f}"))
    for place, run in enumerate(runs):
        y = top + place * row + 15
        parts.append(text(86, y, run["cc"], "end"))
        parts.append(text(WIDTH - RIGHT, y, f"grade {run['grade']}", "end", SOFT))
    return parts


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    suimon, picture = sys.argv[1:]
    result = read([suimon, "run", SCENARIO, "--json", "--series"])
    colours = {entry["name"]: entry["colour"] for entry in read([suimon, "list", "--json"])}
    title = "One download over a synthetic 3G link, five senders"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        text(20, 30, title, style='font-size="16" font-weight="700"'),
        *delays(result["queue_series"], colours),
        *bars(result["runs"], colours),
        "</svg>",
    ]
    Path(picture).write_text("\n".join(parts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
