"""Round-trip times of the kernel's TCP, as a router sees them: python3 bench/round_trips.py [--write]

CUBIC flows with delayed acknowledgements cross a router and a bottleneck of 10 Mbit/s in a guest of `suimon lab`, with
timestamps and without. The router's device toward the senders is recorded, and `suimon estimate` reads the recording.
The truth is the sender's own smoothed round-trip time (`ss`), ten times a second. Both are medians over all flows.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from guest_link import NETWORK, lab
from measure import ROOT, BenchError, run
from page import write_between
from simulators import built

WORK = ROOT / "suimon-out" / "round-trips"
PAGE = ROOT / "docs" / "estimators.md"
RTTS_MS, FLOWS = (10, 60, 300), (1, 4, 20, 100)
SECONDS = 12
# Between two flows' beginnings, and all of them together.
APART_S, BEGUN_S = 0.1, 2
BAR = 0.10

JOB = (
    NETWORK
    + """for name in a b; do
    ip netns exec $name sysctl -qw net.ipv4.tcp_timestamps={timestamps} net.ipv4.tcp_no_metrics_save=1
    ip netns exec $name sysctl -qw net.ipv4.tcp_congestion_control=cubic
done
tc -n b qdisc add dev xb root netem delay {rtt}ms limit 100000
tc -n r qdisc add dev rb root tbf rate 10mbit burst 1514 limit {buffer}
ip netns exec a ping -q -c 1 -w 3 10.91.2.2 > ping.txt
ip netns exec b socat -b 65536 -u TCP4-LISTEN:5201,fork,backlog=128 OPEN:/dev/null,wronly &
ip netns exec r tcpdump -Z root -U -i ra -s 96 -w capture.pcap -B 16384 tcp 2> tcpdump.txt &
record=$!
sleep 1
for nth in $(seq {flows}); do
    ip netns exec a timeout {seconds} socat -b 16384 -u /dev/zero TCP4:10.91.2.2:5201 &
    sleep {apart}
done
for nth in $(seq {looks}); do
    ip netns exec a ss -tin state established | grep -o ' rtt:[0-9.]*' >> truth.txt || true
    sleep 0.1
done
kill -INT $record
wait $record
"""
)


@dataclass(frozen=True)
class Cell:
    """How far the median of the estimates is off, and how many of the flows have one."""

    error: float
    estimated: int
    flows: int

    @property
    def misses(self) -> bool:
        """One flow in ten may get next to nothing through in so short a time."""
        return abs(self.error) > BAR or self.estimated < 0.9 * self.flows

    def __str__(self) -> str:
        of = f" ({self.estimated} of {self.flows} flows)" if self.estimated < self.flows else ""
        return f"{self.error:+.1%}{of}"


def measured(suimon: Path, rtt_ms: int, flows: int, timestamps: bool) -> Cell:
    """What the estimates of one guest are worth."""
    folder = WORK / f"{rtt_ms}ms-{flows}-{'with' if timestamps else 'without'}"
    script = JOB.format(
        timestamps=int(timestamps),
        rtt=rtt_ms,
        # What the path holds, and sixty packets for a short one.
        buffer=max(10_000_000 // 8 * rtt_ms // 1000, 60 * 1514),
        flows=flows,
        apart=min(APART_S, BEGUN_S / flows),
        seconds=SECONDS,
        looks=10 * (SECONDS - 4),
    )
    kept = folder / "truth.txt"
    if not kept.exists() or (folder / "job.sh").read_text() != script:
        kept.unlink(missing_ok=True)
        lab(suimon, folder, script, [], ["socat", "tcpdump", "ss", "tc"])
    truth = [float(rtt) for rtt in re.findall(r"rtt:([\d.]+)", kept.read_text())]
    command = [str(suimon), "estimate", str(folder / "capture.pcap"), "--from", "10.91.1.0/24"]
    found = json.loads(run([*command, "--estimators", "bursts", "--json"], folder.name))
    estimates: list[float] = [flow["rtt_p50_ms"] for flow in found["flows"] if flow["rtt_samples"]]
    if not estimates or not truth:
        raise BenchError(f"{folder.name}: {len(estimates)} flows have estimates, and {len(truth)} truths are known")
    return Cell(statistics.median(estimates) / statistics.median(truth) - 1, len(estimates), flows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suimon", type=Path, help="the program [default: as `make build` makes it]")
    parser.add_argument(
        "--flows", type=int, nargs="+", choices=FLOWS, default=FLOWS, help="only so many (default: all)"
    )
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.write and set(options.flows) != set(FLOWS):
        parser.error("--write needs all numbers of flows")
    suimon = (options.suimon or built("release")).resolve()
    lines = ["| RTT | Flows | With timestamps | Without |", "| --- | --- | --- | --- |"]
    misses = 0
    for rtt_ms in RTTS_MS:
        for flows in options.flows:
            cells = [measured(suimon, rtt_ms, flows, timestamps) for timestamps in (True, False)]
            misses += sum(cell.misses for cell in cells)
            lines.append(f"| {rtt_ms} ms | {flows} | " + " | ".join(str(cell) for cell in cells) + " |")
            print(lines[-1], flush=True)
    cases = 2 * len(RTTS_MS) * len(options.flows)
    lines += ["", f"Within {BAR:.0%}: {cases - misses} of {cases}."]
    print("\n".join(lines))
    if options.write:
        write_between(PAGE, "kernel", "\n".join(lines))
    return int(misses > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"round_trips: {error}")
