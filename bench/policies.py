"""Queue policies in the kernel beside the simulator: python3 bench/policies.py [--only TEXT] [--seeds N]

Each cell is one link of 10 Mbit/s with room for 150 kB, Reno flows with ECN and a policy of `suimon queue`, in `suimon
lab` (virtual time, the same bytes each time), and the same link in the simulator. From the kernel's record of every
packet and its verdict the queue is made again as the simulator counts it: what waits, without the packet that is being
sent, whenever a packet joins or leaves. Seconds 5 to 25.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from measure import WORK, BenchError, run
from simulators import built

BYTES_PER_S = 10_000_000 / 8
BEGIN_S, END_S = 5, 25
SIMULATED_SEEDS = 5
# Differences up to these agree; counts of fewer than so many are not compared.
BOUNDS = {"queue": 0.10, "COV": 0.15, "marks": 0.15, "drops": 0.15}
MIN_COUNT = 50
PASSED, MARKED, DROPPED, NO_ROOM = range(4)


@dataclass(frozen=True)
class Cell:
    """A case that both go through."""

    policy: str
    flows: int
    rtt_ms: int

    @property
    def name(self) -> str:
        return f"{self.policy.replace(':', '-').replace('=', '-')}-{self.flows}"


CELLS = [
    Cell("rtt-aqm:target=100kB", 30, 28),
    Cell("red:min_th=40kB:max_th=120kB", 30, 28),
    Cell("pie:target=40ms", 30, 28),
    Cell("rtt-aqm:target=75kB", 4, 60),
    Cell("red", 4, 60),
    Cell("dpd-qt", 4, 60),
    Cell("even", 4, 60),
]


@dataclass(frozen=True)
class Outcome:
    """A cell's numbers."""

    queue_kb: float
    cov: float
    marks: float
    drops: float


def script(cell: Cell, seed: int) -> str:
    """A job for the lab: sender a, router r, receiver b. All of the delay is on the way of the ACKs."""
    return f"""set -e
for name in a r b; do ip netns add $name; done
ip link add xa netns a type veth peer name ra netns r
ip link add xb netns b type veth peer name rb netns r
ip -n a addr add 10.91.1.2/24 dev xa; ip -n r addr add 10.91.1.1/24 dev ra
ip -n b addr add 10.91.2.2/24 dev xb; ip -n r addr add 10.91.2.1/24 dev rb
for end in "a xa" "r ra" "r rb" "b xb"; do ip -n ${{end% *}} link set ${{end#* }} gso_max_segs 1 up; done
ip -n a route add default via 10.91.1.1; ip -n b route add default via 10.91.2.1
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
for name in a b; do ip netns exec $name sysctl -qw net.ipv4.tcp_ecn=1 net.ipv4.tcp_no_metrics_save=1; done
tc -n b qdisc add dev xb root netem delay {cell.rtt_ms}ms limit 100000
ip netns exec r suimon queue load {cell.policy} --dev rb --rate 10Mbit --buffer 150kB --seed {seed} >&2
ip netns exec b iperf3 -s -1 -D --logfile /dev/null
ip netns exec r suimon queue trace rb --json --afresh --seconds {END_S + 3} > trace.json &
record=$!
sleep 1
ip netns exec a iperf3 -c 10.91.2.2 -t {END_S + 3} -P {cell.flows} -C reno > /dev/null &
wait $record
"""


def of_kernel(suimon: Path, cell: Cell, seed: int) -> Outcome:
    """The cell in the lab."""
    folder = WORK / "queue" / f"{cell.name}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.sh").write_text(script(cell, seed))
    command = [str(suimon), "lab", "--memory", "1GB", "--seed", str(seed), "--with-program", "iperf3"]
    done = subprocess.run(
        [*command, "--", "sh", "job.sh"], cwd=folder, capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{cell.name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    outcome = again(folder / "trace.json")
    (folder / "trace.json").unlink()
    return outcome


def again(trace: Path) -> Outcome:
    """The queue that the packets of a trace made."""
    with trace.open() as lines:
        next(lines)
        records = sorted((json.loads(line) for line in lines), key=lambda record: int(record["number"]))
    first = next(record["now_ns"] for record in records if record["size_bytes"] >= 1400) / 1e9
    begin, end = first + BEGIN_S, first + END_S
    events: list[tuple[float, int]] = []
    free = 0.0
    for record in records:
        if record["verdict"] in (DROPPED, NO_ROOM):
            continue
        now, size = record["now_ns"] / 1e9, record["size_bytes"]
        turn = max(now, free)
        free = turn + size / BYTES_PER_S
        if turn > now:
            events += [(now, size), (turn, -size)]
    waiting, lengths = 0, []
    for time, change in sorted(events):
        waiting += change
        if begin <= time < end:
            lengths.append(waiting)
    mean = fmean(lengths)
    variance = fmean((length - mean) ** 2 for length in lengths)
    within = [record["verdict"] for record in records if begin <= record["now_ns"] / 1e9 < end]
    drops = within.count(DROPPED) + within.count(NO_ROOM)
    return Outcome(mean / 1e3, variance**0.5 / mean, within.count(MARKED), drops)


SCENARIO = """
name = "queue"
duration = "{end}s"
record_interval = "off"
[[window]]
name = "steady"
from = "{begin}s"
[[link]]
name = "link"
between = ["a", "b"]
rate = "10Mbit"
buffer = "150kB"
queue = "{queue}"
[link.reverse]
rate = "unlimited"
delay = "{rtt}ms"
queue = "droptail"
[[flow]]
name = "main"
count = {flows}
from = "a"
to = "b"
cc = "reno"
profile = "linux-6"
start = ["0s", "10ms"]
[flow.stack]
ecn = true
"""


def of_simulator(suimon: Path, cell: Cell) -> Outcome:
    """The cell in the simulator, as the mean over seeds."""
    folder = WORK / "queue"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{cell.name}.toml"
    text = SCENARIO.format(begin=BEGIN_S, end=END_S, queue=cell.policy, rtt=cell.rtt_ms, flows=cell.flows)
    file.write_text(text)
    command = [str(suimon), "run", str(file), "--json", "--no-files", "--set", f"seeds={SIMULATED_SEEDS}"]
    windows = json.loads(run(command, cell.name))["windows"]

    def mean(key: str) -> float:
        return fmean(float(each[key]) for each in windows)

    drops = mean("dropped_early") + mean("dropped_overflow")
    return Outcome(mean("backlog_mean_bytes") / 1e3, mean("backlog_cov"), mean("marked"), drops)


def row(cell: Cell, ours: Outcome, kernel: Outcome) -> tuple[str, list[str]]:
    """A line of the table, and what misses its bound."""
    pairs = {
        "queue": (kernel.queue_kb, ours.queue_kb, ".1f"),
        "COV": (kernel.cov, ours.cov, ".3f"),
        "marks": (kernel.marks, ours.marks, ".0f"),
        "drops": (kernel.drops, ours.drops, ".0f"),
    }
    texts, misses = [], []
    for name, (theirs, own, form) in pairs.items():
        text = f"{theirs:{form}} / {own:{form}}"
        counted = name in ("queue", "COV") or max(theirs, own) > MIN_COUNT
        if counted and own > 0 and abs(theirs / own - 1) > BOUNDS[name]:
            text = f"**{text}**"
            misses.append(f"{cell.name}: {name} {theirs / own - 1:+.0%}")
        texts.append(text)
    return f"| {cell.flows}, {cell.rtt_ms} ms | `{cell.policy}` | {' | '.join(texts)} |", misses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of the kernel (default: 3)")
    parser.add_argument("--only", metavar="TEXT", help="cells whose names contain this")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    cells = [cell for cell in CELLS if not options.only or options.only in cell.name]
    print("| Flows, RTT | Policy | Queue in kB, kernel / simulator | COV | Marks | Drops |")
    print("| --- | --- | --- | --- | --- | --- |")
    all_misses = []
    with ThreadPoolExecutor(2) as pool:
        for cell in cells:
            found = list(pool.map(lambda seed, cell=cell: of_kernel(suimon, cell, seed), range(1, options.seeds + 1)))
            kernel = Outcome(
                fmean(one.queue_kb for one in found),
                fmean(one.cov for one in found),
                fmean(one.marks for one in found),
                fmean(one.drops for one in found),
            )
            line, misses = row(cell, of_simulator(suimon, cell), kernel)
            print(line, flush=True)
            all_misses += misses
    print(f"\npolicies: {len(all_misses)} measures miss their bounds", *all_misses, sep="; ")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"policies: {error}", file=sys.stderr)
        sys.exit(1)
