"""`suimon shape` on a kernel beside the simulator: python3 bench/shape.py [TRACE...] [--cake-autorate FOLDER] [--write]

Four CUBIC uploads cross a router whose next hop is an emulated link that plays a recording, with a queue for each flow
and no limit on waiting, in a guest of `suimon lab` (virtual time, the same bytes each time). A ping has a queue of its
own there. The router has no shaper, or `suimon queue load pie` at the recording's median rate, or the script
cake-autorate with CAKE, or `suimon shape`. How long packets of the uploads wait, in both queues together, comes from a
record of the router's device toward the senders, which `suimon estimate` reads. The simulator's numbers are those of
`suimon shape --simulate`, with as many seconds of the same recording. The script is taken from `--cake-autorate`, a
folder with its version 3.2, and needs `fping`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from guest_link import lab, starts
from measure import ROOT, WORK, BenchError, run
from page import write_between
from simulators import built

PAGE = ROOT / "docs" / "guides" / "shape.md"
TRACES = ROOT.parent / "shared" / "traces"
RECORDED = [
    TRACES / f"{name}.{way}"
    for way in ("up", "down")
    for name in ("ATT-LTE-driving-2016", "TMobile-UMTS-driving", "Verizon-LTE-short")
]
FLOWS, RTT_MS, WARM_UP_S = 4, 40, 5
# The link is there for so long before the uploads begin, and with them the recording.
LEAD_S = 10
# Of the simulator, and here.
ROOM = "1MB"
LEAST_BPS = 100_000
OPPORTUNITY_BITS = 12_000
SHAPERS = NONE, FIXED, SCRIPT, OWN = ("none", "fixed", "cake-autorate", "autorate")
GOODPUT_SHARE, WAIT_SHARE = 0.95, 0.5
BAR = "The bar is half of the 95th percentile of `fixed` and of `cake-autorate`, at 95 % of the goodput of each."

# What stands at the far end of the link: servers, and the six hosts that the script asks.
FAR = """set -e
device=$(ip -o link | grep -o 'suimon[0-9]*' | head -n 1)
ip route add 10.91.1.0/24 dev "$device"
for nth in 1 2 3 4 5 6; do ip addr add 10.92.0.$nth/32 dev lo; done
exec socat -b 65536 -u TCP4-LISTEN:5201,fork,backlog=128 OPEN:/dev/null,wronly
"""
# The router, and a sender `a` behind it, whose packets are on the wire one by one.
NEAR = """set -e
began=$(date +%s%N)
ip netns add a
ip link add xa netns a type veth peer name ra
ip -n a addr add 10.91.1.2/24 dev xa
ip addr add 10.91.1.1/24 dev ra
ip -n a link set xa gso_max_segs 1 up
ip link set ra gso_max_segs 1 up
ip -n a route add default via 10.91.1.1
sysctl -qw net.ipv4.ip_forward=1
for prefix in "" "ip netns exec a"; do
    # The first allows it to other namespaces.
    $prefix sysctl -qw net.ipv4.tcp_congestion_control=cubic
done
# Windows of the simulator's 4 MB, of which Linux takes half of its buffers.
ip netns exec a sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem="4096 16384 8000000"
ip netns exec a ping -q -c 1 -w 3 $SUIMON_FAR > first.txt
{shaper}
left=$(((began - $(date +%s%N)) / 1000000 + {lead} * 1000))
sleep $((left / 1000)).$(printf %03d $((left % 1000)))
{senders}
sleep {warm_up}
received() {{ ip netns exec a ss -tin state established | grep -o ' bytes_acked:[0-9]*' > "$1"; }}
tcpdump -Z root -U -i ra -s 96 -w capture.pcap -B 16384 tcp 2> tcpdump.txt &
record=$!
received before.txt
ping -q -i 0.5 -w {seconds} $SUIMON_FAR > ping.txt || true
received after.txt
kill -INT $record
wait $record || true
tc -s qdisc show dev path0 > qdisc.txt
uname -r > kernel
"""
# Waits for the program in front of the queue, which the kernel checks.
SHAPE = """suimon shape path0 --json > shape.json 2> shape.txt &
until suimon shape path0 --status 2> /dev/null | grep -q because; do sleep 0.1; done"""
CAKE = """tc qdisc add dev path0 root cake bandwidth {base}kbit
mkdir -p /var/run /var/log
export CAKE_AUTORATE_SCRIPT_PREFIX={folder} CAKE_AUTORATE_CONFIG_PREFIX=$PWD
# It looks for its devices where those of another namespace are.
unshare -m sh -c 'mount -t sysfs sysfs /sys; exec bash {folder}/cake-autorate.sh $PWD/config.primary.sh' \
    < /dev/null > script.txt 2>&1 &"""
CONFIG = """dl_if=ra
ul_if=path0
adjust_dl_shaper_rate=0
adjust_ul_shaper_rate=1
min_dl_shaper_rate_kbps={base}
base_dl_shaper_rate_kbps={base}
max_dl_shaper_rate_kbps={base}
min_ul_shaper_rate_kbps={low}
base_ul_shaper_rate_kbps={base}
max_ul_shaper_rate_kbps={high}
connection_active_thr_kbps={low}
reflectors=("10.92.0.1" "10.92.0.2" "10.92.0.3" "10.92.0.4" "10.92.0.5" "10.92.0.6")
enable_sleep_function=0
output_summary_stats=1
log_file_path_override="$PWD"
"""
JOB = (
    'suimon shell --quiet --up "trace={trace} {rtt}ms 4MB" '
    '--up-queue "fq-codel:target=1000s:interval=1000s" --server "sh far.sh" -- sh near.sh\n'
)


@dataclass(frozen=True)
class Rates:
    """Rates of a recording in bits per second, each over a second of it, as a user would measure and set them."""

    low: int
    median: int
    high: int

    @staticmethod
    def of(trace: Path) -> Rates:
        times = [int(line) for line in trace.read_text().split()]
        counts = [0] * max(times[-1] // 1000, 1)
        for time in times:
            if time // 1000 < len(counts):
                counts[time // 1000] += 1
        counts.sort()
        low, median, high = (counts[int((len(counts) - 1) * share)] for share in (0.05, 0.5, 0.95))
        return Rates(*(max(count * OPPORTUNITY_BITS, LEAST_BPS) for count in (low, median, high)))


def later(trace: Path) -> str:
    """A recording that begins after the lead, and with its own end."""
    times = [int(line) for line in trace.read_text().split()]
    period = times[-1]
    return "".join(f"{time}\n" for time in sorted((time + 1000 * LEAD_S - 1) % period + 1 for time in times))


@dataclass(frozen=True)
class Outcome:
    """Numbers of a shaper over a recording."""

    goodput_mbps: float
    wait_p50_ms: float
    wait_p95_ms: float
    # Of a ping from the router to the far end; the simulator has none.
    ping_mean_ms: float | None = None
    ping_max_ms: float | None = None


def in_kernel(suimon: Path, trace: Path, shaper: str, script: Path | None, seconds: int) -> Outcome:
    """A shaper over a recording in a guest; where its files are there already, from these."""
    folder = WORK / "shape" / f"{trace.name}-{shaper}"
    folder.mkdir(parents=True, exist_ok=True)
    rates, programs = Rates.of(trace), ["socat", "tcpdump", "ss", "tc", "ping"]
    options = ["--with", "far.sh", "--with", "near.sh", "--with", trace.name]
    low, base, high = (rate // 1000 for rate in (rates.low, rates.median, rates.high))
    begins, config = "", None
    if shaper == FIXED:
        begins = f"suimon queue load pie --dev path0 --rate {rates.median}bit --buffer {ROOM} >&2"
    elif shaper == OWN:
        begins = SHAPE
    elif shaper == SCRIPT and script:
        begins = CAKE.format(base=base, folder=script)
        config = CONFIG.format(low=low, base=base, high=high)
        programs += ["bash", "fping", "awk", "unshare", "mount"]
        # `fping` asks for the number of ICMP there.
        options += ["--with", "config.primary.sh", "--with", str(script), "--with", "/etc/protocols"]
    sends = "\n".join(
        f"(sleep {start}; ip netns exec a timeout {seconds + WARM_UP_S + 5} "
        "socat -b 16384 -u /dev/zero TCP4:$SUIMON_FAR:5201) &"
        for start in starts(1, FLOWS, 0, 1)
    )
    near = NEAR.format(shaper=begins, senders=sends, lead=LEAD_S, warm_up=WARM_UP_S, seconds=seconds)
    job = JOB.format(trace=trace.name, rtt=RTT_MS)
    files = {"far.sh": FAR, "near.sh": near, trace.name: later(trace)}
    if config:
        files["config.primary.sh"] = config
    kept = folder / "kernel"
    same = all((folder / name).exists() and (folder / name).read_text() == text for name, text in files.items())
    if not same or not kept.exists():
        kept.unlink(missing_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        lab(suimon, folder, job, options, programs)
    if shaper == SCRIPT and "SUMMARY; " not in "".join(log.read_text() for log in folder.glob("*.log*")):
        raise BenchError(f"{folder.name}: the script has not looked at a ping")
    return read(suimon, folder, seconds)


def read(suimon: Path, folder: Path, seconds: int) -> Outcome:
    """What a job has left in its folder."""

    def acknowledged(name: str) -> int:
        return sum(int(count) for count in re.findall(r":(\d+)", (folder / name).read_text()))

    command = [str(suimon), "estimate", str(folder / "capture.pcap"), "--from", "10.91.1.0/24", "--json"]
    found = json.loads(run(command, folder.name))["capture"]
    ping = re.search(r"rtt [^=]*= [\d.]+/([\d.]+)/([\d.]+)/", (folder / "ping.txt").read_text())
    if ping is None:
        raise BenchError(f"{folder.name}: no ping came back")
    return Outcome(
        (acknowledged("after.txt") - acknowledged("before.txt")) * 8 / seconds / 1e6,
        found["rtt_p50_ms"] - RTT_MS,
        found["rtt_p95_ms"] - RTT_MS,
        float(ping[1]),
        float(ping[2]),
    )


def in_simulator(suimon: Path, trace: Path, seconds: int) -> dict[str, Outcome]:
    """All shapers over a recording in the simulator."""
    command = [str(suimon), "shape", "--simulate", str(trace), "--duration", f"{seconds + WARM_UP_S}s", "--json"]
    command += ["--flows", str(FLOWS), "--rtt", f"{RTT_MS}ms"]
    rows = json.loads(run(command, trace.name))
    return {row["shaper"]: Outcome(row["goodput_mbps"], row["delay_p50_ms"], row["delay_p95_ms"]) for row in rows}


def row(trace: str, shaper: str, ours: Outcome, kernel: Outcome) -> str:
    """A line of the table: the simulator's numbers, and the kernel's."""
    cells = [
        trace,
        f"`{shaper}`",
        f"{ours.goodput_mbps:.2f} / {kernel.goodput_mbps:.2f}",
        f"{ours.wait_p50_ms:.0f} / {kernel.wait_p50_ms:.0f}",
        f"{ours.wait_p95_ms:.0f} / {kernel.wait_p95_ms:.0f}",
        f"{kernel.ping_mean_ms:.0f}, {kernel.ping_max_ms:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def misses(trace: str, found: dict[str, Outcome]) -> list[str]:
    """A sentence for each pair of numbers beyond the bar."""
    lines: list[str] = []
    for rival in (FIXED, SCRIPT):
        own, other = found.get(OWN), found.get(rival)
        if own is None or other is None:
            continue
        if own.wait_p95_ms > WAIT_SHARE * other.wait_p95_ms:
            share = own.wait_p95_ms / other.wait_p95_ms
            lines.append(f"- `{trace}`: {share:.0%} of the 95th percentile of `{rival}`.")
        if own.goodput_mbps < GOODPUT_SHARE * other.goodput_mbps:
            lines.append(f"- `{trace}`: {own.goodput_mbps / other.goodput_mbps:.1%} of the goodput of `{rival}`.")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE", help="recordings in Mahimahi's format")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="how long is measured (default: 60)")
    parser.add_argument("--cake-autorate", type=Path, metavar="FOLDER", help="the script, version 3.2")
    parser.add_argument("--shapers", nargs="+", choices=SHAPERS, default=SHAPERS, help="only these (default: all)")
    parser.add_argument("--suimon", type=Path, help="the program [default: as `make build` makes it]")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = (options.suimon or built("release")).resolve()
    script = options.cake_autorate.resolve() if options.cake_autorate else None
    shapers = [shaper for shaper in SHAPERS if shaper in options.shapers and (script or shaper != SCRIPT)]
    lines = [
        "| Recording | Shaper | Goodput, Mbit/s | Wait p50, ms | p95, ms | Ping, mean and longest, ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    missed: list[str] = []
    for trace in options.traces or RECORDED:
        if not trace.exists():
            raise BenchError(f"{trace}: there is no such recording")
        simulated, found = in_simulator(suimon, trace, options.seconds), {}
        for shaper in shapers:
            found[shaper] = in_kernel(suimon, trace, shaper, script, options.seconds)
            lines.append(row(trace.name, shaper, simulated[shaper], found[shaper]))
            print(lines[-1], flush=True)
        missed += misses(trace.name, found)
    verdict = ["", f"{BAR} On the kernel `autorate` " + ("misses it here:" if missed else "meets it everywhere.")]
    verdict += ["", *missed] if missed else []
    print("\n".join(verdict))
    if options.write:
        write_between(PAGE, "kernel", "\n".join([*lines, *verdict]))
    return int(bool(missed))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"shape: {error}")
