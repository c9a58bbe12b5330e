"""The simulator beside the real kernel: python3 bench/truth.py [--write]

Each cell is one link of 10 Mbit/s and 62 ms with senders and a queue discipline of the kernel, in `suimon lab` (virtual
time, the same bytes each time), and the same link in the simulator. Flows start at the same times in both: when the
kernel's sent their SYNs. The kernel's queue is integrated over time from a record of every packet that joins it.
`--write` writes docs/truth.md.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from statistics import fmean

from measure import ROOT, WORK, BenchError, run
from simulators import built

PAGE = ROOT / "docs" / "truth.md"
RATE_BPS = 10_000_000
BYTES_PER_S = RATE_BPS / 8
FULL_PACKET = 1500
# Where the round-trip time is a multiple of a packet's transmission, or a little more, every arrival falls on the same
# place between two departures, so that each seed has its own.
DELAYS_MS = (60.0, 61.2)
# A token bucket lets a packet go without the time of its transmission.
BUCKET_MS = FULL_PACKET / BYTES_PER_S * 1e3
SECONDS = 30
# Of the simulator, for each of the kernel's.
SIMULATED_SEEDS = 3
# Differences up to these agree; counts of fewer than so many are not compared.
BOUNDS = {"goodput": 0.05, "backlog": 0.10, "p95": 0.10, "drops": 0.20, "marks": 0.20}
MIN_COUNT = 50

TBF = (
    "tc qdisc add dev rb root handle 1: stab overhead -14 linklayer ethernet tbf rate 10mbit burst 1600 limit 64mb; "
    "tc qdisc add dev rb parent 1: handle 10: "
)
RED = "red limit 150000 min 30000 max 90000 avpkt 1000 burst 51 probability 0.1 bandwidth 10mbit"


@dataclass(frozen=True)
class Queue:
    """A queue discipline: as `tc` sets it, and as the simulator names it."""

    kernel: str
    simulator: str
    # Packets leave in the order of their arrival, so that the bytes before a packet are its waiting time.
    in_order: bool = True


QUEUES = {
    "pfifo": Queue(TBF + "pfifo limit 100", "droptail"),
    "red": Queue(TBF + RED, "red:min_th=30kB:max_th=90kB:w_q=0.03125:gentle=false:rules=linux"),
    "codel": Queue(TBF + "codel limit 1000", "codel", in_order=False),
    "fq_codel": Queue(TBF + "fq_codel limit 1000", "fq-codel:rules=linux", in_order=False),
    "pie": Queue(TBF + "pie limit 1000", "pie-linux"),
    "cake": Queue("tc qdisc add dev rb root handle 10: cake bandwidth 10mbit overhead 0", "cake", in_order=False),
}
# Senders whose names differ.
SENDERS = {"cubic": "cubic-linux", "cubic, no HyStart": "cubic-linux:hystart=false", "vegas": "vegas-linux"}


@dataclass(frozen=True)
class Cell:
    """A case that both go through."""

    cc: str
    queue: str
    flows: int
    ecn: bool = False

    @property
    def name(self) -> str:
        return f"{self.cc}-{self.queue}-{self.flows}{'-ecn' if self.ecn else ''}".replace(", ", "-").replace(" ", "")

    def starts(self, seed: int) -> list[float]:
        """Seconds at which the kernel's flows are to start: one by one, at random within a tenth of a second."""
        chance = random.Random(seed)
        later = [0.2 * nth + chance.uniform(0, 0.1) for nth in range(1, self.flows)]
        return [0.0, *(round(start, 3) for start in later)]

    def delay_ms(self, seed: int) -> float:
        """The delay of the link, on the way of the ACKs."""
        return round(random.Random(-seed).uniform(*DELAYS_MS), 3)


CELLS = [
    *(Cell(cc, "pfifo", 1) for cc in ("reno", "cubic", "cubic, no HyStart", "bic", "vegas", "highspeed")),
    *(Cell(cc, "pfifo", 1) for cc in ("scalable", "htcp", "bbr")),
    *(Cell(cc, "pfifo", 4) for cc in ("reno", "cubic", "bbr")),
    *(Cell("cubic", queue, flows, True) for queue in QUEUES if queue != "pfifo" for flows in (1, 4)),
    *(Cell("cubic", queue, 4) for queue in ("red", "codel", "fq_codel", "pie", "cake")),
    Cell("cubic", "pfifo", 20),
    Cell("cubic", "fq_codel", 20, True),
]


@dataclass(frozen=True)
class Outcome:
    """A cell's numbers; `None` where one is not known."""

    goodput_mbps: float
    backlog_kb: float
    p95_ms: float | None
    drops: float
    marks: float


def script(cell: Cell, seed: int) -> str:
    """A job for the lab: sender a, router r, receiver b. All of the delay is on the way of the ACKs."""
    queue = QUEUES[cell.queue].kernel
    if cell.queue in ("codel", "fq_codel"):
        queue += " ecn" if cell.ecn else " noecn"
    elif cell.ecn and cell.queue in ("red", "pie"):
        queue += " ecn"
    senders = "\n".join(
        f"(sleep {start + 2}; ip netns exec a timeout {SECONDS + 2} "
        "socat -b 16384 -u /dev/zero TCP4:10.91.2.2:5201) &"
        for start in cell.starts(seed)
    )
    return f"""set -e
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
for name in a b; do
    ip netns exec $name sysctl -qw net.ipv4.tcp_ecn={int(cell.ecn)} net.ipv4.tcp_no_metrics_save=1
done
for prefix in "" "ip netns exec a"; do
    # The first allows it to other namespaces.
    $prefix sysctl -qw net.ipv4.tcp_congestion_control={cell.cc.split(",")[0]}
done
tc -n b qdisc add dev xb root netem delay {round((cell.delay_ms(seed) + BUCKET_MS) * 1e3)}us limit 100000
echo {int("no HyStart" not in cell.cc)} > /sys/module/tcp_cubic/parameters/hystart
{queue.replace("tc qdisc", "tc -n r qdisc")}
ip netns exec r suimon queue load red:min_th=60MB --dev rb --rate 10Mbit --buffer 64MB --in-front-of >&2
ip netns exec b socat -b 65536 -u TCP4-LISTEN:5201,fork OPEN:/dev/null,wronly &
ip netns exec r suimon queue trace rb --json --afresh --seconds {SECONDS + 5} > trace.json &
record=$!
{senders}
sleep {SECONDS + 1}
tc -n r -s -j qdisc show dev rb > qdisc.json
wait $record
uname -r > kernel
"""


@dataclass(frozen=True)
class Queued:
    """What the record of a kernel's queue shows, from the first packet of data on."""

    # Mean over time.
    backlog_bytes: float
    # 95th percentile of the packets' waiting times.
    p95_s: float
    # Packets that were dropped included.
    left_bytes: float
    # When each flow sent its SYN, from the first of them on.
    starts_s: list[float]


def of_kernel(suimon: Path, cell: Cell, seed: int) -> tuple[Outcome, list[float], str]:
    """The cell in the lab, with the times at which flows began there and the kernel's version."""
    folder = WORK / "truth" / f"{cell.name}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.sh").write_text(script(cell, seed))
    command = [str(suimon), "lab", "--memory", "1GB", "--seed", str(seed), "--with-program", "socat"]
    done = subprocess.run(
        [*command, "--", "sh", "job.sh"], cwd=folder, capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{cell.name}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    leaf = json.loads((folder / "qdisc.json").read_text())[-1]
    marks = leaf.get("marked", leaf.get("ecn_mark", 0)) + sum(tin["ecn_mark"] for tin in leaf.get("tins", []))
    queued = integrated(folder / "trace.json")
    (folder / "trace.json").unlink()
    outcome = Outcome(
        goodput_mbps=(queued.left_bytes - FULL_PACKET * leaf["drops"]) * 1448 / FULL_PACKET * 8 / SECONDS / 1e6,
        backlog_kb=queued.backlog_bytes / 1e3,
        p95_ms=queued.p95_s * 1e3 if QUEUES[cell.queue].in_order else None,
        drops=leaf["drops"],
        marks=marks,
    )
    if len(queued.starts_s) != cell.flows:
        raise BenchError(f"{cell.name}: {len(queued.starts_s)} flows sent data, not {cell.flows}")
    return outcome, queued.starts_s, (folder / "kernel").read_text().strip()


def integrated(trace: Path) -> Queued:
    """Reads the record of a queue."""
    with trace.open() as lines:
        next(lines)
        records = sorted((json.loads(line) for line in lines), key=lambda record: int(record["number"]))
    data = [record for record in records if record["size_bytes"] >= 1400]
    with_data = {record["flow"] for record in data}
    firsts: dict[int, dict[str, int]] = {}
    for record in records:
        if record["flow"] in with_data:
            firsts.setdefault(record["flow"], record)
    # A sender that hears nothing takes another hash, under which its connection appears again.
    syns = sorted(first["now_ns"] / 1e9 for first in firsts.values() if first["size_bytes"] < 100)
    begin = data[0]["now_ns"] / 1e9
    end = begin + SECONDS
    # A token bucket lets a packet go and then waits as long as its transmission takes. So the time at which the bucket
    # is free follows from the packets before, and the bytes that wait correct it where the queue has dropped some.
    free, area, came, waiting = begin, 0.0, 0, 0
    waits = []
    for record in (record for record in records if begin <= record["now_ns"] / 1e9 < end):
        now, size, waiting = record["now_ns"] / 1e9, record["size_bytes"], record["backlog_bytes"]
        free = min(max(free, now), now + (waiting + FULL_PACKET) / BYTES_PER_S)
        if waiting > 0:
            free = max(free, now + waiting / BYTES_PER_S)
        wait = free - now
        free += size / BYTES_PER_S
        area += size * wait
        came += size
        waits.append(wait)
    return Queued(
        backlog_bytes=area / SECONDS,
        p95_s=sorted(waits)[int(len(waits) * 0.95)],
        left_bytes=came - waiting,
        starts_s=[round(syn - syns[0], 6) for syn in syns],
    )


SCENARIO = """
name = "truth"
duration = "{seconds}s"
record_interval = "off"
[[link]]
name = "link"
between = ["a", "b"]
rate = "10Mbit"
delay = "0ms"
buffer = "{buffer} packets"
queue = "{queue}"
[link.reverse]
rate = "unlimited"
delay = "{delay}ms"
queue = "droptail"
"""
FLOW = """
[[flow]]
name = "f{nth}"
from = "a"
to = "b"
cc = "{cc}"
profile = "linux-6"
start = "{start}s"
[flow.stack]
ecn = {ecn}
"""


def of_simulator(suimon: Path, cell: Cell, all_starts: list[list[float]]) -> Outcome:
    """The cell in the simulator: the mean over the kernel's seeds, which began flows at these times, and its own."""
    folder = WORK / "truth"
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for seed, (nth_kernel, starts) in product(range(1, SIMULATED_SEEDS + 1), enumerate(all_starts, 1)):
        buffer = 100 if cell.queue in ("pfifo", "red") else 1000
        queue = QUEUES[cell.queue].simulator
        text = SCENARIO.format(seconds=SECONDS, delay=cell.delay_ms(nth_kernel), buffer=buffer, queue=queue)
        cc = SENDERS.get(cell.cc, cell.cc)
        for nth, start in enumerate(starts):
            text += FLOW.format(nth=nth, cc=cc, start=start, ecn=str(cell.ecn).lower())
        file = folder / f"{cell.name}-{seed}.toml"
        file.write_text(text)
        command = [str(suimon), "run", str(file), "--json", "--no-files", "--set", f"seed={seed}"]
        runs.append(json.loads(run(command, cell.name))["runs"][0])

    def mean(key: str) -> float:
        return fmean(float(each[key]) for each in runs)

    return Outcome(
        goodput_mbps=mean("goodput_bps") / 1e6,
        backlog_kb=mean("backlog_mean_bytes") / 1e3,
        p95_ms=mean("delay_p95_ms") if QUEUES[cell.queue].in_order else None,
        drops=mean("packets_lost"),
        marks=mean("packets_marked"),
    )


def ratios(ours: Outcome, kernel: Outcome) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    """Each measure: its name, the simulator's, the kernel's, and their ratio where they are compared."""
    pairs = {
        "goodput": (ours.goodput_mbps, kernel.goodput_mbps),
        "backlog": (ours.backlog_kb, kernel.backlog_kb),
        "p95": (ours.p95_ms, kernel.p95_ms),
        "drops": (ours.drops, kernel.drops),
        "marks": (ours.marks, kernel.marks),
    }
    for name, (own, theirs) in pairs.items():
        counted = name not in ("drops", "marks") or max(own or 0, theirs or 0) > MIN_COUNT
        ratio = own / theirs if own is not None and theirs and counted else None
        yield name, own, theirs, ratio


def row(cell: Cell, ours: Outcome, kernel: Outcome) -> tuple[str, int, int]:
    """A line of the table, and how many of how many measures agree."""
    texts, agree, compared = [], 0, 0
    for name, own, theirs, ratio in ratios(ours, kernel):
        if own is None or theirs is None:
            texts.append("")
            continue
        digits = 0 if name in ("drops", "marks") else 2 if name == "goodput" else 1
        text = f"{own:.{digits}f} / {theirs:.{digits}f}"
        if ratio is not None:
            holds = abs(ratio - 1) <= BOUNDS[name]
            agree, compared = agree + holds, compared + 1
            text += f" ({ratio:.2f})" if holds else f" (**{ratio:.2f}**)"
        texts.append(text)
    ecn = "yes" if cell.ecn else "no"
    return f"| {cell.flows} {cell.cc} | {cell.queue} | {ecn} | {' | '.join(texts)} |", agree, compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="seeds of the kernel (default: 2)")
    parser.add_argument("--only", metavar="TEXT", help="cells whose names contain this")
    parser.add_argument("--suimon", type=Path, default=built(), help="the program to run")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if not shutil.which("socat"):
        print("truth: socat is not installed; Debian's package is socat", file=sys.stderr)
        return 1
    suimon = options.suimon.resolve()
    cells = [cell for cell in CELLS if not options.only or options.only in cell.name]
    jobs = [(cell, seed) for cell in cells for seed in range(1, options.seeds + 1)]
    lines, agree, compared, kernel = [], 0, 0, ""
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda job: of_kernel(suimon, *job), jobs)
        for cell in cells:
            found = list(islice(results, options.seeds))
            kernel = found[0][2]
            ours = of_simulator(suimon, cell, [starts for _, starts, _ in found])
            line, holds, of = row(cell, ours, mean_of([outcome for outcome, _, _ in found]))
            print(line, flush=True)
            lines.append(line)
            agree, compared = agree + holds, compared + of
    print(f"\ntruth: {agree} of {compared} measures agree, {agree / compared:.0%}")
    if options.write:
        write(lines, agree, compared, kernel, options.seeds)
    return 0


def mean_of(outcomes: list[Outcome]) -> Outcome:
    waits = [outcome.p95_ms for outcome in outcomes if outcome.p95_ms is not None]
    return Outcome(
        goodput_mbps=fmean(outcome.goodput_mbps for outcome in outcomes),
        backlog_kb=fmean(outcome.backlog_kb for outcome in outcomes),
        p95_ms=fmean(waits) if waits else None,
        drops=fmean(outcome.drops for outcome in outcomes),
        marks=fmean(outcome.marks for outcome in outcomes),
    )


MARKS = "<!-- table: written by bench/truth.py -->", "<!-- end of the table -->"


def write(lines: list[str], agree: int, compared: int, kernel: str, seeds: int) -> None:
    """Puts the table into its page."""
    head = [
        f"Kernel {kernel}, {seeds} seeds; simulator {SIMULATED_SEEDS} seeds for each of them. "
        f"**{agree} of {compared} measures agree** ({agree / compared:.0%}).",
        "",
        "| Senders | Queue | ECN | Goodput, Mbit/s | Backlog, kB | p95, ms | Drops | Marks |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    text = PAGE.read_text()
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text("\n".join([before + MARKS[0], "", *head, *lines, "", MARKS[1] + after]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"truth: {error}", file=sys.stderr)
        sys.exit(1)
