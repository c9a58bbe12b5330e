"""The page and the picture of the whole road."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from xml.sax.saxutils import escape

from measure import ROOT, run
from page import write_between
from whole_scenario import PARTS, TODAY, name_of

PAGE, PICTURE = ROOT / "docs" / "whole.md", ROOT / "docs" / "whole.svg"
ALL = name_of(PARTS)
NAMES = {TODAY: "none: CUBIC and Compound from end to end, drop tail, one radio", ALL: f"**{ALL}**"}
# What `places` has of each combination.
PLACES = [
    "shared link: wait",
    "router before a gateway: wait",
    "its use, %",
    "own radio: wait",
    "shared radio: wait",
    "a phone's MB by its own radio",
    "by the shared one",
    "other customers, Mbit/s",
]
WIDTH, LEFT, RIGHT, PANEL, GAP, TOP = 900, 60, 20, 110, 52, 64
INK, SOFT, LINES = "#17202b", "#5b6877", "#e3e7ec"
COLOURS = {TODAY: "#8a94a0", ALL: "#e15759"}


class Number(Protocol):
    """A mean with half the width of its 95 % interval."""

    @property
    def mean(self) -> float: ...
    @property
    def half_width(self) -> float: ...


class Heading(Protocol):
    """The name, the unit and the digits of a measure."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def digits(self) -> int: ...
    @property
    def more_is_better(self) -> bool: ...


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def headings(measures: Sequence[Heading]) -> list[str]:
    return [f"{one.name}, {one.unit}" if one.unit else one.name for one in measures]


def results(measures: Sequence[Heading], estimates: dict[str, list[Any]]) -> list[str]:
    """What each combination gives."""

    def number(measure: Heading, one: Number) -> str:
        return f"{one.mean:.{measure.digits}f} ± {one.half_width:.{measure.digits}f}"

    rows = [
        [NAMES.get(name, name), *(number(measure, one) for measure, one in zip(measures, of, strict=True))]
        for name, of in estimates.items()
    ]
    return table(["Parts", *headings(measures)], rows)


def on_the_way(places: dict[str, list[float]]) -> list[str]:
    """What waits on the way."""
    rows = [[NAMES.get(name, name), *(f"{value:.1f}" for value in of)] for name, of in places.items()]
    way = "On the way; waits are the 95th percentiles of the time in a queue, in ms:"
    return [way, "", *table(["Parts", *PLACES], rows)]


def tables(
    measures: Sequence[Heading],
    estimates: dict[str, list[Any]],
    effects: dict[str, list[Any]],
    places: dict[str, list[float]],
) -> list[str]:
    """What each combination gives, what each part adds, and what waits on the way."""

    def percent(measure: Heading, one: Number) -> str:
        text = f"{one.mean:+.1f} ± {one.half_width:.1f} %"
        if abs(one.mean) <= one.half_width:
            return text
        return f"**{text}**" if (one.mean > 0) == measure.more_is_better else f"*{text}*"

    parts = [
        [part, *(percent(measure, one) for measure, one in zip(measures, of, strict=True))]
        for part, of in effects.items()
    ]
    added = (
        "What a part adds, as the mean over the eight combinations of the others; bold helps, italic hinders, "
        "and what is plain is within the interval:"
    )
    of_parts = table(["Part", *headings(measures)], parts)
    return [*results(measures, estimates), "", added, "", *of_parts, "", *on_the_way(places)]


@dataclass(frozen=True)
class World:
    """What a combination gives in one world: the measures, and what is on the way."""

    measures: list[float]
    places: list[float]


# The simulator and the kernel are to be no further apart.
BAR = 0.15


def worlds(measures: Sequence[Heading], names: Sequence[str], both: Sequence[Sequence[World]]) -> list[str]:
    """The same runs in the simulator and on the kernel: numbers of both, and how far apart they are."""

    def cell(simulated: float, live: float, digits: int, bar: float) -> str:
        # Next to nothing, such as the handshakes over a radio that carries nothing else.
        if not round(simulated, digits):
            return f"{simulated:.{digits}f}, {live:.{digits}f}"
        apart = live / simulated - 1
        percent = f"{100 * apart:+.0f} %"
        return f"{simulated:.{digits}f}, {live:.{digits}f}: {percent if abs(apart) <= bar else f'**{percent}**'}"

    rows, waits = [], []
    for name, (simulated, live) in zip(names, both, strict=True):
        of = zip(measures, simulated.measures, live.measures, strict=True)
        rows.append([NAMES.get(name, name), *(cell(one, other, measure.digits, BAR) for measure, one, other in of)])
        ways = zip(simulated.places, live.places, strict=True)
        waits.append([NAMES.get(name, name), *(cell(one, other, 1, BAR) for one, other in ways)])
    way = "On the way; waits are the 95th percentiles of the time in a queue, in ms:"
    return [*table(["Parts", *headings(measures)], rows), "", way, "", *table(["Parts", *PLACES], waits)]


def write_worlds(lines: list[str]) -> None:
    """Puts the tables of both worlds into the page."""
    write_between(PAGE, "kernel", "\n".join(lines))


def write_road(name: str, lines: list[str]) -> None:
    """Puts the tables of a road beside the whole one into the page."""
    write_between(PAGE, name, "\n".join(lines))


def write(suimon: Path, scenario: Path, lines: list[str]) -> None:
    """Puts the tables into the page, and draws the picture."""
    write_between(PAGE, "tables", "\n".join(lines))
    command = [str(suimon), "run", str(scenario), "--json", "--series", "--no-files"]
    for setting in ("seeds=1", "record_interval=100ms"):
        command += ["--set", setting]
    PICTURE.write_text(picture(json.loads(run(command, "the picture"))))


PANELS = [
    ("transit", "Shared link: seconds that packets wait", 0.06),
    ("backhaul-a", "Router before the gateway", 0.12),
    ("radio-a-1", "First phone's own radio", 1.0),
]


def text(x: float, y: float, content: str, anchor: str = "start", colour: str = INK, style: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}" {style}>{escape(content)}</text>'


def picture(result: dict[str, Any]) -> str:
    """The queues on the way to one phone as they breathe, with none of the parts and with all."""
    seconds = float(result["runs"][0]["duration_s"])
    height = TOP + len(PANELS) * (PANEL + GAP)
    title = "The queues on the way to a phone, with none of the four parts and with all"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        text(20, 28, title, style='font-size="16" font-weight="700"'),
    ]
    for place, (name, colour) in enumerate(COLOURS.items()):
        x = 20 + place * 90
        parts.append(f'<rect x="{x}" y="40" width="18" height="4" rx="2" fill="{colour}"/>')
        parts.append(text(x + 24, 46, "none" if name == TODAY else "all four"))
    across = (WIDTH - LEFT - RIGHT) / seconds
    for nth, (link, heading, highest) in enumerate(PANELS):
        top = TOP + 22 + nth * (PANEL + GAP)
        bottom = top + PANEL
        parts.append(text(20, top - 8, heading, style='font-weight="600"'))
        for step in range(3):
            y = bottom - step / 2 * PANEL
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LINES}"/>')
            parts.append(text(LEFT - 8, y + 4, f"{highest * step / 2:g}", "end", SOFT))
        for setup, colour in COLOURS.items():
            path, command = "", "M"
            for sample in result["queue_series"]:
                if sample["setup"] != setup or sample["link"] != link:
                    continue
                if sample["delay_ms"] is None:
                    command = "M"
                    continue
                x = LEFT + sample["time_s"] * across
                path += f"{command}{x:.1f} {bottom - min(sample['delay_ms'] / 1e3 / highest, 1) * PANEL:.1f}"
                command = "L"
            parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for tick in range(0, int(seconds) + 1, 5):
            parts.append(text(LEFT + tick * across, bottom + 16, f"{tick} s", "middle", SOFT))
    return "\n".join([*parts, "</svg>"]) + "\n"
