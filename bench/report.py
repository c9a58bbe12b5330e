"""The results as text and as a drawing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

from alone import Alone
from compare import Compared, Measured
from growth import Axis
from measure import counter, median, version
from page import write_between
from scenarios import NS2, NS3, SIMULATORS, SUIMON
from simulators import Simulator

MAX_DIFFERENCE = 0.03
MAX_SPREAD = 2.0
PEERS = (NS2, NS3)


def render(
    compared: list[Compared],
    alone: Alone | None,
    growth: list[Axis],
    simulators: list[Simulator],
    command: str,
) -> str:
    parts = [_machine(simulators, command), _costs(compared), _instructions(compared), _hops(compared)]
    parts += [_memory(compared), _agreement(compared)]
    many = next((one for one in compared if one.case.name == "B5"), None)
    parts.append(_alone(alone, many))
    parts.append(_growth(growth))
    return "\n\n".join(part for part in parts if part)


def write(page: Path, text: str) -> None:
    """Replaces what stands between the markers."""
    write_between(page, "results", text)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _verdict(holds: bool, bar: str) -> str:
    return f"{bar}: {'pass' if holds else '**miss**'}"


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 100 else f"{value:.3g}"


def _cell(compared: Compared, name: str, value: Callable[[Measured], float | None]) -> str:
    result = compared.results.get(name, "not run")
    if isinstance(result, str):
        return result
    number = value(result)
    return "not counted" if number is None else _number(number)


def _machine(simulators: list[Simulator], command: str) -> str:
    versions = [f"{one.name} {one.version()}" for one in simulators if one.prepare() is None]
    missing = [f"{one.name} {one.prepare()}" for one in simulators if one.prepare() is not None]
    model = version(["lscpu"], r"Model name:\s+(.+)")
    rustc = version(["rustc", "--version"], r"rustc (\S+)")
    cxx = version(["c++", "--version"], r"(\d+\.\d+\.\d+)")
    method = counter()
    counted = method[0] if method else "nothing: neither perf nor valgrind is installed"
    rows = [
        ["command", f"`{command}`"],
        ["commit", _commit()],
        ["processor", f"{model}, {os.cpu_count()} cores"],
        ["system", f"{platform.system()} {platform.release()}, {platform.machine()}"],
        ["simulators", ", ".join(versions + missing)],
        ["compilers", f"rustc {rustc}, c++ {cxx}"],
        ["instructions counted by", counted],
    ]
    return _table(["Machine", ""], rows)


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git(
        "status", "--porcelain", "--untracked-files=no", "crates", "Cargo.toml", "Cargo.lock", "bench"
    )
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def _costs(compared: list[Compared]) -> str:
    rows = []
    for one in compared:
        bars = one.case.bars
        ours = one.measured(SUIMON)
        cost = _cell(one, SUIMON, _nanoseconds)
        if ours and bars.nanoseconds:
            cost += f" ({_verdict(_nanoseconds(ours) <= bars.nanoseconds, f'at most {bars.nanoseconds}')})"
        row = [one.case.name, cost, *(_cell(one, peer, _nanoseconds) for peer in PEERS)]
        for peer in PEERS:
            ratio = one.ratio(peer)
            bar = bars.ratios.get(peer)
            text = "" if ratio is None else f"{ratio:.1f}"
            if ratio is not None and bar:
                text += f" ({_verdict(ratio >= bar, f'at least {bar:.0f}')})"
            row.append(text)
        rows.append(row)
    header = ["", *SIMULATORS, *(f"{peer} : suimon" for peer in PEERS)]
    return "### CPU nanoseconds per bottleneck data packet\n\n" + _table(header, rows)


def _nanoseconds(measured: Measured) -> float:
    return median(measured.nanoseconds())


def _instructions(compared: list[Compared]) -> str:
    rows = []
    for one in compared:
        bar = one.case.bars.instructions
        ours = one.measured(SUIMON)
        row = [one.case.name]
        row += [_cell(one, name, lambda measured: measured.instructions_per_packet) for name in SIMULATORS]
        if ours and ours.instructions_per_packet and bar:
            row[1] += f" ({_verdict(ours.instructions_per_packet <= bar, f'at most {bar}')})"
        rows.append(row)
    return "### Instructions per bottleneck data packet\n\n" + _table(["", *SIMULATORS], rows)


def _hops(compared: list[Compared]) -> str:
    rows = [
        [one.case.name, *(_cell(one, name, lambda m: m.hops_per_second() / 1e6) for name in SIMULATORS)]
        for one in compared
    ]
    return "### Packet-hops per CPU second, in millions\n\n" + _table(["", *SIMULATORS], rows)


def _memory(compared: list[Compared]) -> str:
    rows = []
    for one in compared:
        row = [one.case.name]
        row += [_cell(one, name, lambda m: m.peak_bytes() / 1e6) for name in SIMULATORS]
        row += [_cell(one, name, lambda m: m.startup.cpu * 1e3) for name in SIMULATORS]
        rows.append(row)
    header = ["", *(f"{name}, MB" for name in SIMULATORS), *(f"{name}, ms to start" for name in SIMULATORS)]
    return "### Peak memory, and CPU time to set the scenario up\n\n" + _table(header, rows)


def _agreement(compared: list[Compared]) -> str:
    rows = []
    for one in compared:
        for name in SIMULATORS:
            measured = one.measured(name)
            if measured is None:
                continue
            difference = measured.difference()
            verdict = "" if name == SUIMON else f"{difference:+.2%}"
            if abs(difference) > MAX_DIFFERENCE:
                verdict += " **disagrees**"
            seconds, packets = f"{measured.seconds:g} s", _number(measured.counts.packets)
            rows.append([one.case.name, one.case.title, name, seconds, packets, verdict])
    header = ["", "scenario", "simulator", "simulated", "packets", "against suimon"]
    failures = [f"- {failure}" for one in compared for failure in one.failures]
    parts = ["### Packets that the bottlenecks delivered", _table(header, rows), "\n".join(failures)]
    return "\n\n".join(part for part in parts if part)


def _alone(alone: Alone | None, many: Compared | None) -> str:
    rows = []

    def row(what: str, text: str, holds: bool, bar: str) -> None:
        rows.append([what, text, _verdict(holds, bar)])

    if alone:
        for what, wall in (
            ("`suimon --version`", alone.version_wall),
            ("a run of no length", alone.startup_wall),
        ):
            row(f"time of {what}", f"{wall * 1e3:.2f} ms", wall < 3e-3, "under 3 ms")
        idle, busy = alone.idle_flow_bytes, alone.busy_flow_bytes
        row("memory of an idle flow", f"{_number(idle)} bytes", idle <= 4096, "at most 4 KiB")
        row(
            "memory of a flow with 100 packets in flight",
            f"{_number(busy)} bytes",
            busy <= 8192,
            "at most 8 KiB",
        )
        for name, factor in alone.probes.items():
            row(f"CPU time that all probes add to {name}", f"{factor - 1:+.1%}", factor < 1.3, "under 30 %")
    ours = many.measured(SUIMON) if many else None
    if ours:
        wall = median([one.wall for one in ours.runs])
        row("B5, time", f"{wall:.2f} s", wall < 10, "under 10 s")
        row("B5, peak memory", f"{ours.peak_bytes() / 1e6:.0f} MB", ours.peak_bytes() < 1e9, "under 1 GB")
    return "### Suimon alone\n\n" + _table(["", "", "bar"], rows) if rows else ""


def _growth(axes: list[Axis]) -> str:
    if not axes:
        return ""
    parts = [
        "### Growth: Suimon's cost per packet-hop",
        "![Growth](performance.svg)",
    ]
    for axis in axes:
        rows = [
            ["nanoseconds", *(_number(point.nanoseconds) for point in axis.points)],
            ["instructions", *(_number(point.instructions or 0) for point in axis.points)],
        ]
        if axis.points[0].instructions is None:
            rows.pop()
        parts.append(_table([axis.name, *(_power(point.x) for point in axis.points)], rows))
        spread = axis.spread()
        flat = _verdict(spread <= MAX_SPREAD, f"near flat, at most {MAX_SPREAD:g}")
        what = "nanoseconds" if axis.points[0].instructions is None else "instructions"
        parts.append(f"{axis.setting}: the most {what} are {spread:.2f} times the least ({flat}).")
    return "\n\n".join(parts)


def _power(x: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M")):
        if x >= size:
            return f"{x / size:g} {suffix}"
    return _number(x) if x >= 1000 else f"{x:g}"
