"""What a queue policy in the kernel costs a packet: sudo python3 bench/queue_cost.py [--write]

Each policy of `suimon queue` stands at a device of a network namespace, in front of a token bucket in which datagrams
wait all the time, since the bucket is slow. `bpftool prog run` gives its program the same packet a million times, and
tells how long that takes on average. Needs root. Other work on the machine only adds, so that the least of several runs
counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import ROOT, WORK, BenchError, run
from page import write_between
from simulators import built

PAGE = ROOT / "docs" / "queue.md"
POLICIES = ["rtt-aqm", "dpd-qt", "even", "red", "ared", "pie", "rem", "sred", "shyu"]
BAR_NS = 150
PACKETS = 1_000_000
DEVICE, NEAR, FAR = "cost0", "10.93.0.1", "10.93.0.2"
# The bucket sends 1 kB a second, and there are 60 kB to send.
BUCKET = ["tbf", "rate", "8kbit", "burst", "2000", "limit", "100000"]
RATE, BUFFER = "8kbit", "100kB"
FILLED_WITH, PAYLOAD = 60, 1_000
SEND = (
    "import socket; out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    f'[out.sendto(bytes({PAYLOAD}), ("{FAR}", 9)) for _ in range({FILLED_WITH})]'
)


def packet() -> bytes:
    """A segment of TCP with ECN, behind a header of Ethernet."""
    payload = bytes(1_448)
    ip = struct.pack("!BBHHHBBH", 0x45, 2, 52 + len(payload), 1, 0x4000, 64, socket.IPPROTO_TCP, 0)
    addresses = socket.inet_aton(NEAR) + socket.inet_aton(FAR)
    tcp = struct.pack("!HHIIBBHHH", 40_000, 5_201, 1, 1, 0x80, 0x10, 500, 0, 0) + bytes(12)
    return bytes(12) + b"\x08\x00" + ip + addresses + tcp + payload


@contextmanager
def namespace() -> Iterator[list[str]]:
    """A network namespace with a device; gives what runs a command in it."""
    name = f"suimon-cost-{os.getpid()}"
    # `ip netns exec` would hide what is mounted in it when it ends: pins among that.
    inside = ["nsenter", f"--net=/run/netns/{name}"]
    run(["ip", "netns", "add", name], "ip netns add")
    try:
        run(["ip", "-n", name, "link", "add", DEVICE, "type", "veth", "peer", "name", "other"], "a device")
        run(["ip", "-n", name, "addr", "add", f"{NEAR}/24", "dev", DEVICE], "an address")
        for device in (DEVICE, "other"):
            run(["ip", "-n", name, "link", "set", device, "up"], "a device")
        # Nobody answers there.
        run(["ip", "-n", name, "neigh", "add", FAR, "lladdr", "02:00:00:00:00:01", "dev", DEVICE], "a neighbour")
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


def cost_ns(suimon: Path, inside: list[str], policy: str, times: int) -> list[float]:
    """What the program of a policy takes for a packet, in each of so many runs."""
    run([*inside, "tc", "qdisc", "replace", "dev", DEVICE, "root", *BUCKET], "tc")
    # Before the policy is there, which would drop some.
    run([*inside, sys.executable, "-c", SEND], "datagrams")
    load = [str(suimon), "queue", "load", policy, "--dev", DEVICE, "--rate", RATE, "--buffer", BUFFER, "--in-front-of"]
    before = programs()
    run([*inside, *load], policy)
    try:
        new = programs() - before
        if len(new) != 1:
            raise BenchError(f"{policy}: {len(new)} new programs, not one")
        index = json.loads(run([*inside, "ip", "-j", "link", "show", DEVICE], "ip link"))[0]["ifindex"]
        (WORK / "packet").write_bytes(packet())
        # `ifindex` of struct __sk_buff.
        (WORK / "context").write_bytes(struct.pack("40xI148x", index))
        command = ["bpftool", "prog", "run", "id", str(new.pop()), "data_in", str(WORK / "packet")]
        command += ["ctx_in", str(WORK / "context"), "repeat", str(PACKETS)]
        found = []
        for _ in range(times):
            text = run([*inside, *command], f"bpftool with {policy}")
            duration = re.search(r"duration \(average\): (\d+)ns", text)
            if not duration:
                raise BenchError(f"{policy}: bpftool says {text.strip()}")
            found.append(float(duration[1]))
        waiting = json.loads(run([*inside, str(suimon), "queue", "stat", DEVICE, "--json"], "stat"))[0]
        if waiting["backlog_bytes"] == 0:
            raise BenchError(f"{policy}: nothing waited")
        return found
    finally:
        run([*inside, str(suimon), "queue", "unload", DEVICE], policy)
        run([*inside, "tc", "qdisc", "del", "dev", DEVICE, "root"], "tc")


def programs() -> set[int]:
    """The programs of queue policies that are loaded."""
    loaded = json.loads(run(["bpftool", "-j", "prog", "show"], "bpftool"))
    return {one["id"] for one in loaded if one.get("name") == "egress"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suimon", type=Path, help="the program [default: as `make build` makes it]")
    parser.add_argument("--only", nargs="*", metavar="POLICY", default=POLICIES, help="these policies alone")
    parser.add_argument("--times", type=int, default=15, metavar="N", help="runs of each (default: 15)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suimon = (options.suimon or built("release")).resolve()
    WORK.mkdir(parents=True, exist_ok=True)
    lines = ["| Policy | Least, ns a packet | Median |", "| --- | --- | --- |"]
    print("\n".join(lines), flush=True)
    missed = []
    with namespace() as inside:
        for policy in options.only:
            found = cost_ns(suimon, inside, policy, options.times)
            missed += [f"`{policy}`"] if min(found) > BAR_NS else []
            lines.append(f"| `{policy}` | {min(found):.0f} | {statistics.median(found):.0f} |")
            print(lines[-1], flush=True)
    misses = f"missed by {', '.join(missed)}" if missed else "met by all"
    lines += ["", f"The bar of {BAR_NS} ns is {misses}. Kernel {os.uname().release}."]
    print("\n".join(lines[-2:]))
    if options.write:
        write_between(PAGE, "cost", "\n".join(lines))
    return int(bool(missed))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"queue_cost: {error}")
