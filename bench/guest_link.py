"""One congested link in a guest of `suimon lab` (virtual time, same bytes each time), and the same in the simulator.

A sender, a router and a receiver are network namespaces of the guest. All of the delay is on the way of the ACKs,
because netem at a sender would change how much it sends at once. `tcpdump` captures what comes to the router's queue
and what leaves it. A program of `send.c` sends, because common ones wait a millisecond or talk to their servers first.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from measure import BenchError, compiled, run
from passages import Passage, passages

RATE_BPS = 10_000_000
BYTES_PER_S = RATE_BPS / 8
FULL_PACKET = 1500
SYN_BYTES = 60
# A token bucket lets a packet go without the time of its transmission.
BUCKET_MS = FULL_PACKET / BYTES_PER_S * 1e3
# A sender waits for its first ACK longer than for anything within its initial window.
SILENCE_S = 0.02
# What a job leaves in its folder: what came to the queue, and what left it.
CAME, LEFT = "came.pcap", "left.pcap"
# Differences of counts below this are chance.
MIN_COUNT = 50


@dataclass(frozen=True)
class Senders:
    """TCP connections over the link, as both are asked for them."""

    # As the kernel names it, and as the simulator does.
    kernel_cc: str
    simulator_cc: str
    ecn: bool
    # When each begins; the simulator takes the times at which the kernel's began.
    starts_s: Sequence[float]
    # Of the way of the ACKs.
    delay_ms: float

    def started(self, record: Record) -> Senders:
        """The same, with the times at which the kernel's began, and the delay that the kernel's had."""
        return replace(self, starts_s=record.starts_s, delay_ms=record.round_trip_s * 1e3 - BUCKET_MS)


def starts(seed: int, flows: int, apart_s: float, within_s: float) -> list[float]:
    """Seconds at which flows are to begin: one by one, each with a random part."""
    chance = random.Random(seed)
    return [0.0, *(round(apart_s * nth + chance.uniform(0, within_s), 3) for nth in range(1, flows))]


def delay_ms(seed: int, at_least_ms: float) -> float:
    """The delay of a seed, up to one packet's transmission longer than `at_least_ms`.

    Where the round-trip time is a multiple of a transmission, or a little more, every arrival falls on the same
    place between two departures, so that each seed has a delay of its own.
    """
    return round(random.Random(-seed).uniform(at_least_ms, at_least_ms + BUCKET_MS), 3)


# A sender `a`, a router `r` and a receiver `b`, whose packets are on the wire one by one.
NETWORK = """set -e
for name in a r b; do ip netns add $name; done
ip link add xa netns a type veth peer name ra netns r
ip link add xb netns b type veth peer name rb netns r
ip -n a addr add 10.91.1.2/24 dev xa; ip -n r addr add 10.91.1.1/24 dev ra
ip -n b addr add 10.91.2.2/24 dev xb; ip -n r addr add 10.91.2.1/24 dev rb
for end in "a xa" "r ra" "r rb" "b xb"; do
    ip -n ${{end% *}} link set ${{end#* }} gso_max_segs 1 up
done
ip -n a route add default via 10.91.1.1; ip -n b route add default via 10.91.2.1
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
"""
JOB = (
    NETWORK
    + """for name in a b; do
    ip netns exec $name sysctl -qw net.ipv4.tcp_ecn={ecn} net.ipv4.tcp_no_metrics_save=1
done
for prefix in "" "ip netns exec a"; do
    # The first allows it to other namespaces.
    $prefix sysctl -qw net.ipv4.tcp_congestion_control={cc}
done
tc -n b qdisc add dev xb root netem delay {delay_us}us limit 100000
# Or else all SYNs wait for the address of the next hop, and leave together.
ip netns exec a ping -q -c 1 -w 3 10.91.2.2 > ping.txt
{commands}
ip netns exec b socat -b 65536 -u TCP4-LISTEN:5201,fork,backlog=128 OPEN:/dev/null,wronly &
captures=
for capture in "ra came" "rb left"; do
    ip netns exec r tcpdump -i ${{capture% *}} -Z root -B 16384 -s 64 --time-stamp-precision=nano \
        -w ${{capture#* }}.pcap tcp and src host 10.91.1.2 2> ${{capture#* }}.txt &
    captures="$captures $!"
done
sleep 0.5
{senders}
sleep {ends}
kill $captures
wait $captures
ip netns exec b nft list ruleset > nft.txt
cat /proc/timer_list > clocks.txt
uname -r > kernel
"""
)


@dataclass(frozen=True)
class Record:
    """What the kernel's queue has seen of a run."""

    # Of each packet that came, in this order.
    packets: list[Passage]
    # When the first packet of data came.
    begin_s: float
    # When each flow is to begin in the simulator, from the beginning of the first one's millisecond on. Timestamps
    # count milliseconds: where in one packets come decides how receivers measure the round-trip time.
    starts_s: list[float]
    # Of the first packet of data, which finds nothing waiting: some 30 us longer than asked for, which hosts take.
    round_trip_s: float
    # Packets that were lost behind the queue.
    lost: int
    kernel: str


def lab(suimon: Path, folder: Path, script: str, options: Sequence[str], programs: Sequence[str]) -> None:
    """Runs a script in a guest with these options of `suimon lab`; what it writes comes back to `folder`."""
    if missing := [program for program in programs if not shutil.which(program)]:
        raise BenchError(f"{missing[0]} is not installed; Debian's package has the same name")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.sh").write_text(script)
    carried = [text for program in programs for text in ("--with-program", program)]
    command = [str(suimon), "lab", "--memory", "1GB", *options, *carried]
    done = subprocess.run(
        [*command, "--", "sh", "job.sh"], cwd=folder, capture_output=True, text=True, timeout=3600, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{folder.name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")


@dataclass(frozen=True)
class Job:
    """Senders through the queue that shell commands set up, from the first packet of data on, in a guest."""

    folder: Path
    senders: Senders
    commands: str
    seconds: int
    # Of `suimon lab`.
    options: tuple[str, ...]

    @property
    def script(self) -> str:
        sends = "\n".join(
            f"(sleep {start + 0.5}; exec ip netns exec a {compiled('send')} 10.91.2.2 5201 {self.seconds + 2}) &"
            for start in self.senders.starts_s
        )
        return f"# {' '.join(self.options)}\n" + JOB.format(
            ecn=int(self.senders.ecn),
            cc=self.senders.kernel_cc,
            delay_us=round((self.senders.delay_ms + BUCKET_MS) * 1e3),
            commands=self.commands,
            senders=sends,
            # Captures lack the last half second, which is not yet written when they end.
            ends=self.seconds + 2,
        )

    @property
    def is_recorded(self) -> bool:
        """Whether the folder has the record of just this job."""
        job, last = self.folder / "job.sh", self.folder / "kernel"
        return last.exists() and job.read_text() == self.script


def in_kernel(suimon: Path, job: Job) -> Record:
    """The record of a job, which runs where there is none."""
    if not job.is_recorded:
        (job.folder / "kernel").unlink(missing_ok=True)
        lab(suimon, job.folder, job.script, job.options, ["socat", "nft", "tcpdump", str(compiled("send"))])
    record = read(job.folder)
    if len(record.starts_s) != len(job.senders.starts_s):
        raise BenchError(f"{job.folder.name}: {len(record.starts_s)} flows sent data, not {len(job.senders.starts_s)}")
    return record


def read(folder: Path) -> Record:
    """What a job has left in its folder."""
    for name in (CAME, LEFT):
        text = (folder / name).with_suffix(".txt").read_text()
        if "\n0 packets dropped by kernel" not in text:
            raise BenchError(f"{folder.name}: {name} is not whole: {text.strip()}")
    # Captures have the time of day, and TCP has the time since the start.
    offset = re.search(r"clock 1:.*?offset:\s+(\d+) nsecs", (folder / "clocks.txt").read_text(), re.DOTALL)
    if not offset:
        raise BenchError(f"{folder.name}: /proc/timer_list does not tell the offset of the time of day")
    packets = passages(folder / CAME, folder / LEFT, int(offset[1]))
    data = [packet for packet in packets if packet.size_bytes >= 1400]
    firsts: dict[int, Passage] = {}
    for packet in packets:
        firsts.setdefault(packet.flow, packet)
    syns = sorted(first.came_s for first in firsts.values() if first.is_syn)
    # The first ACK lets the packet go that follows the initial window.
    of_first = [packet.came_s for packet in data if packet.flow == data[0].flow]
    after_ack = next(later for one, later in pairwise(of_first) if later - one > SILENCE_S)
    round_trip_s = after_ack - of_first[0]
    # The simulator's link takes the time of a packet's transmission, and a token bucket does not. The simulator's flows
    # begin at such times that the first packet of data reaches the receiver when the kernel's did.
    handshake_s = round_trip_s - BUCKET_MS / 1e3 + SYN_BYTES / BYTES_PER_S
    later_s = of_first[0] - syns[0] - handshake_s - BUCKET_MS / 1e3
    origin_s = int((syns[0] + later_s) * 1e3) / 1e3
    lost = re.search(r"counter packets (\d+)", (folder / "nft.txt").read_text())
    return Record(
        packets,
        data[0].came_s,
        [round(syn + later_s - origin_s, 9) for syn in syns],
        round_trip_s,
        int(lost[1]) if lost else 0,
        (folder / "kernel").read_text().strip(),
    )


def loss(share: float) -> str:
    """Commands after which the receiver loses this share of the packets of data."""
    rule = f"meta length '>' 1000 numgen random mod 1000000 '<' {round(share * 1e6)} counter drop"
    return (
        "ip netns exec b nft add table ip loss\n"
        "ip netns exec b nft add chain ip loss in '{ type filter hook prerouting priority -300; }'\n"
        f"ip netns exec b nft add rule ip loss in {rule}"
    )


SCENARIO = """
name = "{name}"
duration = "{seconds}s"
record_interval = "off"
{head}
[[link]]
name = "link"
between = ["a", "b"]
rate = "10Mbit"
buffer = "{buffer}"
queue = "{queue}"
loss = "{loss}%"
[link.reverse]
rate = "unlimited"
delay = "{delay:.6f}ms"
queue = "droptail"
loss = "0%"
"""
FLOW = """
[[flow]]
name = "f{nth}"
from = "a"
to = "b"
cc = "{cc}"
profile = "linux-6"
start = "{start:.9f}s"
[flow.stack]
ecn = {ecn}
"""


@dataclass(frozen=True)
class Simulated:
    """A queue of the simulator, and how long it is looked at."""

    queue: str
    buffer: str
    seconds: int
    # Share of packets that are lost behind the queue.
    loss: float = 0
    # More lines for the head of the scenario.
    head: str = ""


@dataclass(frozen=True)
class Run:
    """What `suimon run --json` shows of a run, and of its one window if it has one."""

    whole: dict[str, Any]
    window: dict[str, Any]


def in_simulator(suimon: Path, folder: Path, senders: Senders, what: Simulated, seeds: int) -> list[Run]:
    """The same link in the simulator with each of so many seeds."""
    text = SCENARIO.format(
        name=folder.name,
        seconds=what.seconds,
        head=what.head,
        buffer=what.buffer,
        queue=what.queue,
        loss=100 * what.loss,
        delay=senders.delay_ms,
    )
    for nth, start in enumerate(senders.starts_s):
        text += FLOW.format(nth=nth, cc=senders.simulator_cc, start=start, ecn=str(senders.ecn).lower())
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scenario.toml"
    file.write_text(text)
    command = [str(suimon), "run", str(file), "--json", "--no-files", "--set", f"seeds={seeds}"]
    found = json.loads(run(command, folder.name))
    windows = found.get("windows") or [{}] * seeds
    return [Run(one, window) for one, window in zip(found["runs"], windows, strict=True)]


@dataclass(frozen=True)
class Measure:
    """A number of the simulator beside the kernel's, either of them `None` where it is not known."""

    name: str
    simulator: float | None
    kernel: float | None
    # Largest share of the kernel's by which they may differ.
    bound: float
    digits: int
    # A count is compared where one of the two exceeds `MIN_COUNT`.
    count: bool = False

    @property
    def ratio(self) -> float | None:
        """`None` where the two are not compared."""
        if self.simulator is None or not self.kernel:
            return None
        if self.count and max(self.simulator, self.kernel) <= MIN_COUNT:
            return None
        return self.simulator / self.kernel

    @property
    def agrees(self) -> bool:
        return self.ratio is None or abs(self.ratio - 1) <= self.bound

    @property
    def text(self) -> str:
        """Both, and their ratio, which is bold beyond the bound."""
        if self.simulator is None or self.kernel is None:
            return ""
        both = f"{self.simulator:.{self.digits}f} / {self.kernel:.{self.digits}f}"
        if self.ratio is None:
            return both
        return f"{both} ({self.ratio:.2f})" if self.agrees else f"{both} (**{self.ratio:.2f}**)"


@dataclass
class Tally:
    """How many measures agree, of those that are compared."""

    agree: int = 0
    compared: int = 0

    def row(self, labels: Sequence[str], measures: Sequence[Measure]) -> str:
        """A line of a table; its measures are counted."""
        compared = [measure for measure in measures if measure.ratio is not None]
        self.compared += len(compared)
        self.agree += sum(measure.agrees for measure in compared)
        return "| " + " | ".join([*labels, *(measure.text for measure in measures)]) + " |"

    @property
    def text(self) -> str:
        share = self.agree / self.compared if self.compared else 1
        return f"{self.agree} of {self.compared} measures agree ({share:.0%})"
