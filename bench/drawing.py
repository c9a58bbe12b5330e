"""Growth as a picture: one panel for each axis."""

from __future__ import annotations

import math

from growth import Axis

WIDTH, HEIGHT, GAP = 250, 150, 50
LEFT, TOP, BOTTOM = 50, 30, 45
INK, LINE, FAINT = "#444444", "#4e79a7", "#dddddd"


def draw(axes: list[Axis]) -> str:
    """Nanoseconds per packet-hop from zero upward, on the same scale everywhere, over a logarithmic axis."""
    top = _round_up(max(point.nanoseconds for axis in axes for point in axis.points))
    width = LEFT + len(axes) * (WIDTH + GAP)
    height = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for index, axis in enumerate(axes):
        parts += _panel(axis, LEFT + index * (WIDTH + GAP), top)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(axis: Axis, left: float, top: float) -> list[str]:
    logs = [math.log10(point.x) for point in axis.points]
    low, high = min(logs), max(logs)
    bottom = TOP + HEIGHT

    def place(log: float) -> float:
        return left + (log - low) / (high - low) * WIDTH

    def level(value: float) -> float:
        return bottom - value / top * HEIGHT

    parts = [f'<text x="{left}" y="{TOP - 14}">CPU ns per packet-hop against {axis.name}</text>']
    for step in range(5):
        value = top * step / 4
        y = level(value)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    spots = [(place(log), level(point.nanoseconds)) for log, point in zip(logs, axis.points, strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{LINE}" stroke-width="2"/>')
    for (x, y), point in zip(spots, axis.points, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{LINE}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_short(point.x)}</text>')
    return parts


def _round_up(value: float) -> float:
    unit = 10 ** math.floor(math.log10(value))
    return float(next(unit * step for step in (1, 2, 4, 6, 8, 10) if unit * step >= value))


def _short(x: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:g}{suffix}"
    return f"{x:g}"
