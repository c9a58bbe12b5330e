"""A gateway measured: python3 bench/gateway.py [links] [pages] [speed] [memory] [programs] [--write]

`links`: downloads over emulated radios on a real kernel in virtual time (`suimon lab`), through a gateway and without
one, and the same in the simulator. `pages`: the same for a page, alone and beside a download. `speed`: throughput and
new connections a second between network namespaces, beside HAProxy, socat and a plain route; needs root and a calm
machine. `memory`: what ten thousand open connections take. `programs`: a browser, curl, git, ssh and mail, with a
gateway and without one; needs root. `--write` puts the tables into docs/guides/gateway.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import gateway_pages
import gateway_programs
import gateway_speed
from measure import ROOT, WORK, BenchError, run
from simulators import built

PAGE = ROOT / "docs" / "guides" / "gateway.md"
SERVER_RTT_MS = 100
TRACES = ROOT.parent / "shared" / "traces"
UMTS, LTE = TRACES / "TMobile-UMTS-driving.down", TRACES / "ATT-LTE-driving-2016.down"


@dataclass(frozen=True)
class Radio:
    """A link to the phone, and for how long a download lasts."""

    name: str
    speed: str
    rtt_ms: int
    buffer: str
    seconds: int
    loss: str = "0%"
    needs: Path | None = None

    @property
    def line(self) -> str:
        loss = "" if self.loss == "0%" else f" loss={self.loss}"
        return f"{self.speed} {self.rtt_ms}ms {self.buffer}{loss}"

    @property
    def in_scenario(self) -> str:
        """The speed as a key of a scenario's link."""
        if self.speed.startswith("hsdpa "):
            _, profile, geometry = self.speed.split()
            return f'hsdpa = {{ profile = "{profile}", geometry = "{geometry}" }}'
        kind, _, value = self.speed.rpartition("=")
        return f'{kind or "rate"} = "{value}"'


RADIOS = [
    Radio("384 kbit/s, 80 ms", "384kbit", 80, "48kB", 40),
    Radio("2 Mbit/s, 80 ms", "2Mbit", 80, "250kB", 30),
    Radio("2 Mbit/s, 80 ms, 1 % loss", "2Mbit", 80, "250kB", 30, "1%"),
    Radio("20 Mbit/s, 80 ms", "20Mbit", 80, "2500kB", 20),
    Radio("20 Mbit/s, 80 ms, 1 % loss", "20Mbit", 80, "2500kB", 20, "1%"),
    Radio("HSDPA cell PA3 of 10 dB, 80 ms", "hsdpa PA3 10dB", 80, "400kB", 30),
    Radio("UMTS trace, 80 ms", f"trace={UMTS}", 80, "1MB", 60, needs=UMTS),
    Radio("LTE trace, 80 ms", f"trace={LTE}", 80, "1MB", 30, needs=LTE),
]


@dataclass(frozen=True)
class Case:
    """Downloads to one phone, with or without a gateway."""

    radio: Radio
    gateway: bool
    downloads: int


@dataclass(frozen=True)
class Outcome:
    """What a case gave: the 95th percentile of the wait at the radio, and the goodput of all downloads."""

    p95_ms: float
    goodput_bps: float


JOB = """set -e
ip netns add s
ip link add far0 type veth peer name srv0 netns s
ip addr add 10.93.0.1/24 dev far0; ip link set far0 up
ip -n s addr add 10.93.0.2/24 dev srv0; ip -n s link set srv0 up; ip -n s link set lo up
ip -n s route add default via 10.93.0.1
for side in "" "-n s"; do
    device=$([ -z "$side" ] && echo far0 || echo srv0)
    tc $side qdisc add dev $device root netem delay {delay}ms limit 100000
done
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1
ip netns exec s sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_congestion_control=cubic
ip netns exec s iperf3 -s -D --logfile /dev/null
to=10.93.0.2
port=5201
if {gateway}; then
    suimon gateway --listen 8443 --to 10.93.0.2:5201 --control gateway.sock 2> gateway.log &
    for wait in $(seq 100); do [ -S gateway.sock ] && break; sleep 0.1; done
    to=far
    port=8443
fi
suimon shell --link "{link}" --json link.json -- \\
    iperf3 -c $to -p $port -R -P {downloads} -t {seconds} --json --logfile iperf3.json
uname -r > kernel
"""


def of_kernel(suimon: Path, case: Case) -> Outcome:
    """The case in the lab."""
    kind = f"{case.radio.name}-{case.gateway}-{case.downloads}".replace(" ", "").replace("/", "").replace(",", "-")
    folder = WORK / "gateway" / kind.replace("%", "percent")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    job = JOB.format(
        delay=SERVER_RTT_MS // 2,
        gateway="true" if case.gateway else "false",
        link=case.radio.line,
        downloads=case.downloads,
        seconds=case.radio.seconds,
    )
    (folder / "job.sh").write_text(job)
    carried = ["--with", str(case.radio.needs)] if case.radio.needs else []
    command = [str(suimon), "lab", "--memory", "1GB", "--with-program", "iperf3", *carried, "--", "sh", "job.sh"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise BenchError(f"{kind}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    link = json.loads((folder / "link.json").read_text())
    radio = max(link["queues"], key=lambda queue: float(queue["bytes"]))
    transfer = json.loads((folder / "iperf3.json").read_text())
    return Outcome(float(radio["delay_p95_ms"]), float(transfer["end"]["sum_received"]["bits_per_second"]))


SCENARIO = """name = "gateway"
duration = "{seconds}s"
record_interval = "off"
seeds = 3
[[link]]
name = "radio"
between = ["gateway", "phone"]
{speed}
delay = "{radio_delay}ms"
buffer = "{buffer}"
loss = "{loss}"
[link.reverse]
rate = "unlimited"
[[link]]
name = "servers"
between = ["server", "gateway"]
rate = "1Gbit"
delay = "{server_delay}ms"
buffer = "unbounded"
reported = false
[[flow]]
name = "main"
from = "server"
to = "phone"
count = {downloads}
cc = "cubic-linux"
window = "6MB"
start = ["0s", "100ms"]
{gateway}
"""


def of_simulator(suimon: Path, case: Case) -> Outcome:
    """The case in the simulator, as the mean over three seeds."""
    radio = case.radio
    file = WORK / "gateway" / "scenario.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    gateway = 'gateway = { node = "gateway", cc = "fs-at", buffer = "6MB" }' if case.gateway else ""
    text = SCENARIO.format(
        seconds=radio.seconds,
        speed=radio.in_scenario,
        radio_delay=radio.rtt_ms // 2,
        buffer=radio.buffer.replace("kB", " kB").replace("MB", " MB").replace(" ", ""),
        loss=radio.loss,
        server_delay=SERVER_RTT_MS // 2,
        downloads=case.downloads,
        gateway=gateway,
    )
    file.write_text(text)
    found = json.loads(run([str(suimon), "run", str(file), "--json", "--no-files"], radio.name))["runs"]
    return Outcome(
        sum(float(one["delay_p95_ms"]) for one in found) / len(found),
        sum(float(one["goodput_bps"]) for one in found) / len(found),
    )


def speed_of(bps: float) -> str:
    return f"{bps / 1e6:.2f} Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.0f} kbit/s"


def links(suimon: Path, only: str | None) -> list[str]:
    """The table of downloads, with and without a gateway, live and simulated."""
    lines = [
        "| Radio | Downloads | Without: delay | goodput | Gateway: delay | goodput "
        "| Simulated without: delay | goodput | Simulated gateway: delay | goodput |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for radio in RADIOS:
        if only and only not in radio.name:
            continue
        if radio.needs and not radio.needs.is_file():
            print(f"gateway: {radio.name} is left out, since {radio.needs} is not there", file=sys.stderr)
            continue
        for downloads in (1, 8):
            cells = []
            for find in (of_kernel, of_simulator):
                for gateway in (False, True):
                    found = find(suimon, Case(radio, gateway, downloads))
                    cells.append(f"{found.p95_ms:.0f} ms | {speed_of(found.goodput_bps)}")
            lines.append(f"| {radio.name} | {downloads} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def speed(suimon: Path, rounds: int, seconds: int) -> list[str]:
    """The table of throughput and of new connections."""
    carried = gateway_speed.throughput(suimon, rounds, seconds)
    opened = gateway_speed.new_connections(suimon, rounds, seconds)
    lines = ["| Between the ends | One download | New connections a second |", "| --- | --- | --- |"]
    for name, rates in carried.items():
        carries = f"{gateway_speed.middle(rates):.1f} Gbit/s ({min(rates):.1f} to {max(rates):.1f})"
        new = opened.get(name)
        opens = f"{gateway_speed.middle(new):.0f} ({min(new):.0f} to {max(new):.0f})" if new else "-"
        lines.append(f"| {name} | {carries} | {opens} |")
    print("\n".join(lines), flush=True)
    return lines


def memory(suimon: Path) -> list[str]:
    """The table of what open connections take."""
    lines = [
        f"| Between the ends | {gateway_speed.CONNECTIONS} open connections: process | machine |",
        "| --- | --- | --- |",
    ]
    for name, one in gateway_speed.memory(suimon).items():
        lines.append(f"| {name} | {one.process_bytes / 1e6:.0f} MB | {one.machine_bytes / 1e6:.0f} MB |")
    print("\n".join(lines), flush=True)
    return lines


def write(name: str, lines: list[str]) -> None:
    """Puts a table into the page. Rows that were not measured this time stay as they are."""
    begin, end = f"<!-- {name}: written by bench/gateway.py -->", f"<!-- end of {name} -->"
    before, rest = PAGE.read_text().split(begin)
    present, after = rest.split(end)
    rows = {key_of(row): row for row in present.split("\n")[3:] if row}
    rows |= {key_of(row): row for row in lines[2:]}
    PAGE.write_text("\n".join([before + begin, *lines[:2], *sorted(rows.values(), key=place_of), end + after]))


def key_of(row: str) -> tuple[str, str]:
    """What a row is of: its first cell, and its second where that is a number of downloads."""
    _, name, second, *_ = (cell.strip() for cell in row.split("|"))
    return name, second if second.isdecimal() else ""


def place_of(row: str) -> int:
    """Radios in their order; other rows stay in theirs."""
    name = key_of(row)[0]
    return next((place for place, radio in enumerate(RADIOS) if radio.name == name), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="links, pages, speed, memory, programs (default: all)")
    parser.add_argument("--only", metavar="TEXT", help="radios whose names contain this")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of speed (default: 3)")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="seconds of each measurement (default: 5)")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    known = {
        "links": lambda: links(suimon, options.only),
        "pages": lambda: gateway_pages.table(suimon),
        "speed": lambda: speed(suimon, options.rounds, options.seconds),
        "memory": lambda: memory(suimon),
        "programs": lambda: gateway_programs.table(suimon),
    }
    parts = options.parts or list(known)
    if wrong := [part for part in parts if part not in known]:
        parser.error(f"unknown part {wrong[0]}; accepted: {', '.join(known)}")
    try:
        for part in parts:
            lines = known[part]()
            if options.write:
                write(part, lines)
    except BenchError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
