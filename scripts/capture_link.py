#!/usr/bin/env python3
"""Captures kernel TCP over a link of known round-trip times. Needs root, iproute2 and /dev/net/tun.

usage: scripts/capture_link.py CAPTURE.pcap [--rtts 40,100] [--flows 2] [--rate 8000] [--seconds 8] ...

    senders --- access delays --- router --- rate, queue, delay --- receiver
       s0                       m0 ^  m1                               r0

Three network namespaces; what is drawn as a line is this program, which carries packets between TUN devices.
The capture is taken at m0, in the kernel: packets as they come to the bottleneck's queue, and the ACKs that
come back. Every second flow runs over IPv6. Each round-trip time has a sender's address of its own.

CAPTURE.json, beside the capture, says for each flow what is known of it: the round-trip time without a queue,
and the mean of what its packets waited before they had left the bottleneck.

Namespaces and devices belong to the processes and go with them, whatever happens.
"""

import argparse
import contextlib
import ctypes
import fcntl
import heapq
import ipaddress
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

CLONE_NEWNET = 0x4000_0000
TUNSETIFF = 0x4004_54CA
IFF_TUN_NO_PI = 0x1001
PR_SET_PDEATHSIG = 1
SO_TIMESTAMPNS = 35
ETH_P_ALL = 3
LINKTYPE_RAW = 101
PCAP_NANOSECONDS = 0xA1B2_3C4D
PORT = 5001
LIBC = ctypes.CDLL(None, use_errno=True)


class MissingError(Exception):
    """Something that this machine does not let us do."""


def enter_namespace() -> None:
    """A network namespace of our own, with the loopback device up."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise MissingError(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    ip("link", "set", "lo", "up")


def ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise MissingError("no ip command (iproute2)") from error
    if done.returncode != 0:
        raise MissingError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def tun(name: str, addresses: list[str], queue: int = 1000) -> int:
    """A TUN device in this namespace; it goes when the file that is returned is closed."""
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    except OSError as error:
        raise MissingError(f"/dev/net/tun: {error.strerror}") from error
    ip("link", "set", name, "addrgenmode", "none", "txqueuelen", str(queue), "mtu", "1500", "up")
    for address in addresses:
        ip("addr", "add", address, "dev", name, *(["nodad"] if ":" in address else []))
    return device


def child(work: Callable[[socket.socket], None]) -> tuple[int, socket.socket]:
    """Runs `work` in a process that ends with this one; the socket leads to it."""
    ours, theirs = socket.socketpair()
    process = os.fork()
    if process:
        theirs.close()
        return process, ours
    ours.close()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    status = 1
    try:
        work(theirs)
        status = 0
    except MissingError as error:
        theirs.sendall(f"missing {error}".encode())
    finally:
        # Not as sys.exit: what the parent registered is the parent's.
        os._exit(status)


def sender_address(nth: int, version: int) -> str:
    return f"10.1.0.{10 + nth}" if version == 4 else f"fd00:1::{10 + nth}"


@dataclass(frozen=True)
class Flow:
    """One connection from the senders to the receiver."""

    address: str
    port: int
    rtt_ms: float

    @property
    def version(self) -> int:
        return ipaddress.ip_address(self.address).version


def flows(options: argparse.Namespace) -> list[Flow]:
    rtts: list[float] = options.rtts
    made = []
    for nth in range(options.flows):
        which = nth % len(rtts)
        made.append(Flow(sender_address(which, 4 if nth % 2 == 0 else 6), 40_000 + nth, rtts[which]))
    return made


def announce(control: socket.socket, device: int) -> None:
    socket.send_fds(control, [b"ready"], [device])


def receive(control: socket.socket, options: argparse.Namespace) -> None:
    """Takes in what comes."""
    enter_namespace()
    device = tun("r0", ["10.2.0.2/24", "fd00:2::2/64"])
    habits = ["quickack", "1"] if options.quickack else []
    habits += ["window", str(options.window)] if options.window else []
    ip("route", "add", "default", "dev", "r0", *habits)
    ip("-6", "route", "add", "default", "dev", "r0", *habits)
    server = socket.create_server(("", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    announce(control, device)

    def drain(connection: socket.socket) -> None:
        # The senders end with a reset.
        with connection, contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 16):
                pass

    while True:
        connection, _ = server.accept()
        threading.Thread(target=drain, args=(connection,), daemon=True).start()


def send(control: socket.socket, options: argparse.Namespace) -> None:
    """Sends as much as TCP lets it."""
    enter_namespace()
    count = range(len(options.rtts))
    addresses = [f"{sender_address(n, 4)}/24" for n in count] + [f"{sender_address(n, 6)}/64" for n in count]
    device = tun("s0", addresses)
    ip("route", "add", "default", "dev", "s0")
    ip("-6", "route", "add", "default", "dev", "s0")
    announce(control, device)
    control.recv(1)
    end = time.monotonic() + options.seconds

    def run(nth: int, flow: Flow) -> None:
        time.sleep(nth * options.stagger)
        family = socket.AF_INET if flow.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.cc.encode())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            connection.bind((flow.address, flow.port))
            connection.settimeout(max(0.1, end - time.monotonic()))
            connection.connect(("10.2.0.2" if flow.version == 4 else "fd00:2::2", PORT))
            connection.settimeout(0.1)
            while time.monotonic() < end:
                try:
                    connection.send(bytes(1 << 16))
                except TimeoutError:
                    continue
            # What still waits to be sent would keep the connection open: a reset ends it.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    threads = [threading.Thread(target=run, args=numbered) for numbered in enumerate(flows(options))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def capture(control: socket.socket, path: Path, length_limit: int) -> None:
    """Writes what passes m0, with the kernel's times, until told to stop."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    packets.bind(("m0", ETH_P_ALL))
    control.sendall(b"ready")
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", PCAP_NANOSECONDS, 2, 4, 0, 0, length_limit, LINKTYPE_RAW))
        while True:
            ready, _, _ = select.select([packets, control], [], [])
            if packets not in ready:
                return
            packet, ancillary, _, _ = packets.recvmsg(1 << 16, 64)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            kept = packet[:length_limit]
            file.write(struct.pack("<IIII", seconds, nanoseconds, len(kept), len(packet)) + kept)


@dataclass
class Link:
    """Carries packets from one device to another."""

    source: int
    sink: int
    delay: Callable[[bytes], float]
    """Seconds that it takes a packet to pass, once it is sent."""
    rate: float | None = None
    """Bytes a second; None: at once."""
    limit: int = 0
    """Packets that may wait at a rate."""
    departures: list[float] = field(default_factory=list)
    waits: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    dropped: int = 0

    def arrival(self, packet: bytes, now: float) -> float | None:
        """When a packet is through; None: it was dropped."""
        if self.rate is None:
            return now + self.delay(packet)
        self.departures = [departure for departure in self.departures if departure > now]
        # The first of these is being sent and does not wait any more.
        if len(self.departures) > self.limit:
            self.dropped += 1
            return None
        start = self.departures[-1] if self.departures else now
        departure = start + len(packet) / self.rate
        self.departures.append(departure)
        self.waits.setdefault(source_of(packet), []).append(departure - now)
        return departure + self.delay(packet)


def addresses_of(packet: bytes) -> tuple[str, str]:
    """Source and destination."""
    family, at, length = (socket.AF_INET, 12, 4) if packet[0] >> 4 == 4 else (socket.AF_INET6, 8, 16)
    source, destination = packet[at : at + length], packet[at + length : at + 2 * length]
    return socket.inet_ntop(family, source), socket.inet_ntop(family, destination)


def source_of(packet: bytes) -> tuple[str, int]:
    """Source address and port; neither has options or extension headers here."""
    at = 20 if packet[0] >> 4 == 4 else 40
    return addresses_of(packet)[0], int.from_bytes(packet[at : at + 2], "big")


def forward(links: list[Link], until: Callable[[], bool]) -> float:
    """Carries packets until told to stop; gives the longest that one was late."""
    waiting: list[tuple[float, int, int, bytes]] = []
    by_source = {link.source: link for link in links}
    number, latest = 0, 0.0
    next_look = 0.0
    while True:
        now = time.monotonic()
        if now >= next_look:
            if until():
                return latest
            next_look = now + 0.05
        while waiting and waiting[0][0] <= now:
            due, _, sink, packet = heapq.heappop(waiting)
            latest = max(latest, now - due)
            os.write(sink, packet)
            now = time.monotonic()
        timeout = min(waiting[0][0] if waiting else next_look, next_look) - now
        ready, _, _ = select.select(list(by_source), [], [], max(0.0, timeout))
        for source in ready:
            link = by_source[source]
            try:
                packet = os.read(source, 1 << 16)
            except BlockingIOError:
                continue
            through = link.arrival(packet, time.monotonic())
            if through is not None:
                number += 1
                heapq.heappush(waiting, (through, number, link.sink, packet))


def run(options: argparse.Namespace) -> None:
    """Makes the capture, and says beside it what is known."""
    enter_namespace()
    for key in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        try:
            Path("/proc/sys/net", key).write_text("1")
        except OSError as error:
            raise MissingError(f"/proc/sys/net/{key}: {error.strerror}") from error
    to_senders = tun("m0", ["10.1.0.1/24", "fd00:1::1/64"])
    to_receiver = tun("m1", ["10.2.0.1/24", "fd00:2::1/64"])

    def device_of(control: socket.socket) -> int:
        message, devices, _, _ = socket.recv_fds(control, 4096, 1)
        if not devices:
            raise MissingError(message.decode().removeprefix("missing ") or "a process ended early")
        return devices[0]

    _, receiver = child(lambda control: receive(control, options))
    receiver_device = device_of(receiver)
    sending, senders = child(lambda control: send(control, options))
    sender_device = device_of(senders)
    _, capturing = child(lambda control: capture(control, options.capture, options.length))
    if not capturing.recv(4096).startswith(b"ready"):
        raise MissingError("no packet socket")

    beyond = options.delay / 1e3
    access: dict[str, float] = {}
    for which, rtt in enumerate(options.rtts):
        for version in (4, 6):
            access[sender_address(which, version)] = rtt / 2e3 - beyond

    def near(packet: bytes) -> float:
        source, destination = addresses_of(packet)
        return access.get(source, access.get(destination, 0.0))

    bottleneck = Link(to_receiver, receiver_device, lambda _: beyond, options.rate * 125.0, options.buffer)
    links = [
        Link(sender_device, to_senders, near),
        Link(to_senders, sender_device, near),
        bottleneck,
        Link(receiver_device, to_receiver, lambda _: beyond),
    ]
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        print(f"capture_link: delays are less exact: {error.strerror}", file=sys.stderr)
    deadline = time.monotonic() + options.seconds + 2.0
    senders.sendall(b"x")

    def until() -> bool:
        return time.monotonic() > deadline or os.waitpid(sending, os.WNOHANG)[0] != 0

    late = forward(links, until)
    capturing.sendall(b"x")
    os.wait()
    waits = bottleneck.waits
    facts = {
        "rate_kbit": options.rate,
        "buffer_packets": options.buffer,
        "congestion_control": options.cc,
        "dropped_packets": bottleneck.dropped,
        "longest_lateness_ms": round(late * 1e3, 3),
        "flows": [known(flow, waits.get((flow.address, flow.port), [])) for flow in flows(options)],
    }
    options.capture.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")


def known(flow: Flow, waits: list[float]) -> dict[str, object]:
    host = f"[{flow.address}]" if flow.version == 6 else flow.address
    return {
        "source": f"{host}:{flow.port}",
        "rtt_without_queue_ms": flow.rtt_ms,
        "wait_mean_ms": round(1e3 * sum(waits) / max(1, len(waits)), 3),
        "wait_max_ms": round(1e3 * max(waits, default=0.0), 3),
        "packets": len(waits),
    }


def options_of(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("capture", type=Path, help="where the capture goes")

    def numbers(text: str) -> list[float]:
        return [float(word) for word in text.split(",")]

    parser.add_argument("--rtts", type=numbers, default=[40.0, 100.0], help="round-trip times in ms")
    parser.add_argument("--flows", type=int, default=2, help="flows, which take turns at the RTTs")
    parser.add_argument("--rate", type=float, default=8000.0, help="of the bottleneck in kbit/s")
    parser.add_argument("--buffer", type=int, default=50, help="of the bottleneck in packets")
    parser.add_argument("--delay", type=float, default=15.0, help="from the router to the receiver in ms")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long")
    parser.add_argument("--stagger", type=float, default=0.1, help="seconds between starts of flows")
    parser.add_argument("--window", type=int, help="most bytes that the receiver lets a flow have under way")
    parser.add_argument("--quickack", action="store_true", help="the receiver acknowledges every packet")
    parser.add_argument("--cc", default="reno", help="congestion control of the kernel")
    parser.add_argument("--length", type=int, default=80, help="bytes of each packet that are kept")
    options = parser.parse_args(words)
    if min(options.rtts) < 2 * options.delay:
        parser.error("--rtts: each at least twice the --delay")
    return options


def main() -> NoReturn:
    options = options_of(sys.argv[1:])
    # Whoever is not root, or in a container that allows none of this, gets a code of its own.
    signal.alarm(int(options.seconds) + 20)
    try:
        run(options)
    except MissingError as error:
        print(f"capture_link: cannot make a link here: {error}", file=sys.stderr)
        sys.exit(77)
    sys.exit(0)


if __name__ == "__main__":
    main()
