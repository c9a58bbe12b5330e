"""What `suimon measure` says of lines whose truth is known: python3 bench/line.py [--only NAME,..] [--read] [--write]

Each line is emulated by `suimon shell`, with a server at its far end and a client at its near end: in `suimon lab`
(virtual time, the same bytes each time), or in real time on this machine where the line is too fast for that. The truth
is what the emulator was told, and what its log says that the probes waited. The
line as `suimon measure --save` writes it is then simulated with the same load. `--read` describes again what an earlier
run recorded; `--write` puts the tables into docs/guides/measure.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure import ROOT, BenchError, run
from page import write_between
from simulators import built

PAGE = ROOT / "docs" / "guides" / "measure.md"
WORK = ROOT / "suimon-out" / "line"
# The bars: shares, and milliseconds.
CAPACITY, RTT_MS, BUFFER, LOADED = 0.03, 1.0, 0.10, 0.10
PREDICTED_WAIT, PREDICTED_GOODPUT = 0.15, 0.05
# Headers and content of a probe, in bits, for its time on the wire.
PROBE_BITS = 60 * 8
# As the estimators: what is left out at the beginning of a load.
WARM_UP = 0.3
PACKET = 1500
# A guest takes minutes alone, and ten times as long beside other work.
LIMIT_S = 3600
RECORD, LOG, WORLD = "record.json", "waits.csv", "time"


@dataclass(frozen=True)
class Way:
    """One direction: its rate in Mbit/s, or the name of a trace; its buffer, and its queue."""

    rate: float | str
    buffer: str
    queue: str = "droptail"

    @property
    def kind(self) -> str:
        return {"droptail": "drop_tail", "fq-codel": "fair", "cake": "fair"}.get(self.queue, "aqm")

    @property
    def buffer_bytes(self) -> float:
        number = float(self.buffer.rstrip("abcdefghijklmnopqrstuvwxyzB"))
        return number * (PACKET if self.buffer.endswith("packets") else 1000)

    def shown(self) -> str:
        return f"{self.rate:g}" if isinstance(self.rate, float) else self.rate


@dataclass(frozen=True)
class Case:
    """A line; `is_tuned` where its records were looked at while estimators were written."""

    name: str
    rtt_ms: float
    down: Way
    up: Way
    loss: float = 0.0
    in_lab: bool = True
    is_tuned: bool = True

    def link(self, way: Way) -> str:
        rate = f"{way.rate}Mbit" if isinstance(way.rate, float) else way.rate
        loss = f" loss={self.loss:g}%" if self.loss else ""
        return f"{rate} {self.rtt_ms:g}ms {way.buffer}{loss}"


def both(name: str, rtt_ms: float, rate: float, buffer: str, **more: float | bool) -> Case:
    """A line whose directions are alike."""
    way = Way(rate, buffer)
    return replace(Case(name, rtt_ms, way, way), **more)  # type: ignore[arg-type]


DEEP = "10240packets"
CASES = [
    both("modem", 40, 1.0, "64kB"),
    Case("thin", 180, Way(2.0, "96kB"), Way(0.5, "48kB")),
    Case("dsl", 30, Way(5.0, "128kB"), Way(1.0, "64kB")),
    both("near", 5, 10.0, "125kB"),
    Case("cable", 60, Way(20.0, "300kB"), Way(5.0, "100kB")),
    both("shallow", 40, 20.0, "20kB"),
    both("satellite", 600, 10.0, "750kB"),
    Case("home", 30, Way(50.0, "1000packets"), Way(10.0, "200packets")),
    Case("codel", 60, Way(20.0, DEEP, "codel"), Way(5.0, DEEP, "codel")),
    Case("fq-codel", 60, Way(20.0, DEEP, "fq-codel"), Way(5.0, DEEP, "fq-codel")),
    Case("cake", 50, Way(10.0, DEEP, "cake"), Way(2.0, DEEP, "cake")),
    both("lossy", 100, 10.0, "250kB", loss=1.0),
    Case("lte", 60, Way("lte-driving", "300kB"), Way(5.0, "100kB")),
    Case("fq-codel-far", 150, Way(25.0, DEEP, "fq-codel"), Way(2.0, DEEP, "fq-codel")),
    # Lines that took no part in writing the estimators.
    Case("walking", 50, Way("lte-walking", "500kB"), Way(3.0, "200kB"), is_tuned=False),
    both("far", 250, 4.0, "500kB", is_tuned=False),
    Case("half", 80, Way(30.0, "150kB"), Way(8.0, "40kB"), is_tuned=False),
    Case("deep", 25, Way(8.0, "500kB"), Way(2.0, "125kB"), is_tuned=False),
    Case("codel-near", 20, Way(30.0, DEEP, "codel"), Way(3.0, DEEP, "codel"), is_tuned=False),
    Case("pie", 40, Way(15.0, "1000packets", "pie"), Way(4.0, "1000packets", "pie"), is_tuned=False),
    Case("cake-fast", 15, Way(40.0, DEEP, "cake"), Way(10.0, DEEP, "cake"), is_tuned=False),
    Case("lossy-little", 40, Way(20.0, "200kB"), Way(5.0, "100kB"), loss=0.1, is_tuned=False),
    Case("lossy-much", 30, Way(10.0, "100kB"), Way(3.0, "50kB"), loss=2.0, is_tuned=False),
    both("fibre", 10, 300.0, "375kB", in_lab=False, is_tuned=False),
    both("house", 5, 500.0, "1000kB", in_lab=False, is_tuned=False),
]


def measured(case: Case, suimon: Path, in_lab: bool) -> None:
    """Runs a measurement over the line, and keeps what both ends and the emulator saw."""
    folder = WORK / case.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in (RECORD, LOG):
        (folder / name).unlink(missing_ok=True)
    program = "suimon" if in_lab else str(suimon)
    shell = [program, "shell", "--down", case.link(case.down), "--up", case.link(case.up), "--quiet", "--log", "log"]
    shell += ["--queue", case.down.queue, "--up-queue", case.up.queue]
    shell += ["--server", f"{program} measure --serve --log warn", "--"]
    client = f"sleep 1; {program} measure far --record {RECORD} > said"
    # The reader ends where nobody writes.
    script = f"mkfifo log; grep -E 'sent.*udp' < log > {LOG} &\n"
    script += f"{shlex.join([*shell, 'sh', '-c', client])}\n: <> log; wait; rm log\n"
    (folder / "run.sh").write_text(script)
    (folder / "log").unlink(missing_ok=True)
    command = [str(suimon), "lab", "--with-program", "mkfifo", "--"] if in_lab else []
    (folder / WORLD).write_text("virtual" if in_lab else "real")
    done = subprocess.run(
        [*command, "sh", "run.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if not (folder / RECORD).exists():
        raise BenchError(f"{case.name}: no measurement: {done.stderr[-500:]}")


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]


@dataclass(frozen=True)
class Row:
    """What is said of one direction beside the truth; None where there is no such truth."""

    case: Case
    direction: str
    way: Way
    capacity: tuple[float, float | None]
    rtt: tuple[float, float]
    buffer: tuple[float, float | None, bool]
    loaded: tuple[float, float]
    kind: str

    def misses(self) -> list[str]:
        said = []
        if self.capacity[1] and abs(self.capacity[0] / self.capacity[1] - 1) > CAPACITY:
            said.append("capacity")
        if abs(self.rtt[0] - self.rtt[1]) > RTT_MS:
            said.append("rtt")
        # A queue that is not filled holds at least what was seen.
        if self.buffer[1]:
            off = self.buffer[0] / self.buffer[1] - 1
            if off > BUFFER or (off < -BUFFER and not self.buffer[2]):
                said.append("buffer")
        if abs(self.loaded[0] / self.loaded[1] - 1) > LOADED:
            said.append("loaded")
        if self.kind != self.way.kind:
            said.append("kind")
        return said


def rows(case: Case, suimon: Path) -> list[Row]:
    folder = WORK / case.name
    line: dict[str, Any] = json.loads(
        run([str(suimon), "measure", "--read", str(folder / RECORD), "--json"], "suimon measure")
    )
    record = json.loads((folder / RECORD).read_text())
    with (folder / LOG).open() as log:
        columns = ["time_s", "link", "packet", "event", "waited_us", "late_us", "marked", "size_bytes", "flow"]
        waits = [row for row in csv.DictReader(log, columns) if row["link"] in ("down", "up")]
    # The emulator's clock and the client's: the first probe.
    first = next(float(row["time_s"]) for row in waits if row["link"] == "up")
    start = record["probes"][0]["sent_us"]
    result = []
    on_wire = sum(PROBE_BITS / way.rate / 1e3 for way in (case.down, case.up) if isinstance(way.rate, float))
    for direction, way in (("download", case.down), ("upload", case.up)):
        said = line[direction]
        span = record[direction]["span"]
        begin = span["from_us"] + WARM_UP * (span["to_us"] - span["from_us"])
        link = "down" if direction == "download" else "up"
        here = [
            float(row["waited_us"]) / 1e3
            for row in waits
            if row["link"] == link and begin <= (float(row["time_s"]) - first) * 1e6 + start < span["to_us"]
        ]
        true_buffer = way.buffer_bytes if way.kind == "drop_tail" else None
        result.append(
            Row(
                case,
                direction,
                way,
                (said["capacity_mbps"], way.rate if isinstance(way.rate, float) else None),
                (line["idle"]["rtt_ms"], case.rtt_ms + on_wire),
                (said["buffer"]["bytes"], true_buffer, said["buffer"]["is_at_least"]),
                (said["rtt_p95_ms"], case.rtt_ms + on_wire + percentile(here, 0.95)),
                said["queue"],
            )
        )
    return result


@dataclass(frozen=True)
class Prediction:
    """What the load had in one direction, and what the simulator says of the saved line with the same load."""

    case: Case
    direction: str
    wait: tuple[float, float]
    goodput: tuple[float, float]

    def misses(self) -> list[str]:
        pairs = (("wait", self.wait, PREDICTED_WAIT), ("goodput", self.goodput, PREDICTED_GOODPUT))
        return [name for name, (measured, simulated), bar in pairs if abs(simulated / measured - 1) > bar]


def goodput(load: dict[str, Any], direction: str) -> float:
    """Payload in order after the warm-up, in Mbit/s."""
    span, looks = load["span"], load["receiver"]
    begin, end = span["from_us"] + WARM_UP * (span["to_us"] - span["from_us"]), span["to_us"]
    # The receiver of an upload has the server's clock; its first look is at the first connection.
    ahead = min(look["at_us"] for look in looks) - span["from_us"] if direction == "upload" else 0

    def until(at_us: float) -> int:
        last: dict[int, int] = {}
        for look in looks:
            if look["at_us"] - ahead <= at_us:
                last[look["flow"]] = look["received"]
        return sum(last.values())

    return float((until(end) - until(begin)) * 8 / (end - begin))


def predictions(case: Case, suimon: Path) -> list[Prediction]:
    """Saves the line, and runs the measured load over it in the simulator: one direction, four connections."""
    folder = WORK / case.name
    saved = folder / "line.toml"
    said = run(
        [str(suimon), "measure", "--read", str(folder / RECORD), "--json", "--save", str(saved)], "suimon measure"
    )
    line, record = json.loads(said), json.loads((folder / RECORD).read_text())
    head, *flows = saved.read_text().split("\n[[flow]]")
    head = head.replace('duration = "60s"', 'duration = "10s"\nwarmup = "3s"')
    there, back, rest = head.split("reported = true")
    result = []
    for direction, flow in zip(("download", "upload"), flows, strict=True):
        flags = ["reported = true", "reported = false"]
        shown = flags if direction == "download" else flags[::-1]
        one = folder / f"{direction}.toml"
        one.write_text(f"{there}{shown[0]}{back}{shown[1]}{rest}\n[[flow]]{flow}")
        simulated = json.loads(run([str(suimon), "run", str(one), "--json", "--no-files"], "suimon run"))["runs"][0]
        result.append(
            Prediction(
                case,
                direction,
                (line[direction]["own_queue_p95_ms"], simulated["delay_p95_ms"]),
                (goodput(record[direction], direction), simulated["goodput_bps"] / 1e6),
            )
        )
    return result


def prediction_table(found: list[Prediction]) -> str:
    lines = [
        "| Line | Direction | The load waits, p95, ms | Goodput, Mbit/s | Misses |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {mark(one.case)} | {one.direction} | {one.wait[0]:.4g} / {one.wait[1]:.4g} "
        f"| {one.goodput[0]:.4g} / {one.goodput[1]:.4g} | {', '.join(one.misses()) or '-'} |"
        for one in found
    ]
    held = {name: sum(name not in one.misses() for one in found) for name in ("wait", "goodput")}
    text = (
        f"Within the bars: the load's wait (15 %) {held['wait']} of {len(found)}, "
        f"goodput (5 %) {held['goodput']} of {len(found)}."
    )
    return "\n".join(lines) + f"\n\n{text}"


def mark(case: Case) -> str:
    """The line's name, with what a reader must know of its measurement."""
    world = WORK / case.name / WORLD
    is_real = world.exists() and world.read_text() == "real"
    loss = f", {case.loss:g} % loss" if case.loss else ""
    return f"{case.name}{loss}{'' if case.is_tuned else ' *'}{' †' if is_real else ''}"


def table(found: list[Row]) -> str:
    lines = [
        "| Line | Direction | Capacity, Mbit/s | Idle RTT, ms | Buffer, kB | Loaded RTT p95, ms | Queue | Misses |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in found:
        true_buffer = f" / {row.buffer[1] / 1e3:.0f}" if row.buffer[1] else ""
        least = "at least " if row.buffer[2] else ""
        true_capacity = f" / {row.capacity[1]:g}" if row.capacity[1] else " / varies"
        lines.append(
            f"| {mark(row.case)} | {row.direction} | {row.capacity[0]:.4g}{true_capacity} "
            f"| {row.rtt[0]:.2f} / {row.rtt[1]:.2f} "
            f"| {least}{row.buffer[0] / 1e3:.4g}{true_buffer} | {row.loaded[0]:.4g} / {row.loaded[1]:.4g} "
            f"| {row.kind} / {row.way.kind} | {', '.join(row.misses()) or '-'} |"
        )
    return "\n".join(lines).replace("drop_tail", "drop tail")


def verdict(found: list[Row]) -> str:
    def held(name: str, known: list[Row]) -> str:
        return f"{sum(name not in row.misses() for row in known)} of {len(known)}"

    return (
        f"Within the bars: capacity (3 %) {held('capacity', [row for row in found if row.capacity[1]])}, "
        f"idle round trip (1 ms) {held('rtt', found)}, "
        f"buffer (10 %) {held('buffer', [row for row in found if row.buffer[1]])}, "
        f"loaded p95 (10 %) {held('loaded', found)}, kind of queue {held('kind', found)}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, help="the command; built if not given")
    parser.add_argument("--only", help="names of lines, apart by commas")
    parser.add_argument("--live", action="store_true", help="all lines in real time on this machine")
    parser.add_argument("--read", action="store_true", help="run nothing: describe what was recorded")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/measure.md")
    options = parser.parse_args()
    suimon = options.suimon.resolve() if options.suimon else built()
    cases = {case.name: case for case in CASES}
    names = options.only.split(",") if options.only else list(cases)
    if unknown := [name for name in names if name not in cases]:
        parser.error(f"--only: {unknown[0]}: accepted: {', '.join(cases)}")
    found, predicted = [], []
    for case in (cases[name] for name in names):
        if not options.read:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            measured(case, suimon, case.in_lab and not options.live)
        if (WORK / case.name / RECORD).exists():
            found += rows(case, suimon)
            predicted += predictions(case, suimon)
    text = f"{table(found)}\n\n{verdict(found)}"
    second = prediction_table(predicted)
    print(f"{text}\n\n{second}")
    if options.write:
        for name, written in (("lines", text), ("predictions", second)):
            write_between(PAGE, name, written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
