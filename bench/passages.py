"""How packets passed a queue, from a capture of what came to it and one of what left it.

Nothing is asked of the kernel but to capture, so that every queue discipline of every kernel is measured alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import BenchError

# Of a capture file with nanoseconds, as this machine writes it, and of Ethernet.
MAGIC, FILE_HEADER, PACKET_HEADER, ETHERNET = 0xA1B23C4D, 24, 16, 14
CONGESTION_EXPERIENCED = 3
SYN = 2


@dataclass(frozen=True)
class Captured:
    """A packet of TCP over IPv4, as it was at one place."""

    time_s: float
    # What it has in common with itself at another place, and with no other packet: flow, identification, sequence.
    key: tuple[int, int, int]
    size_bytes: int
    is_marked: bool
    is_syn: bool


@dataclass(frozen=True)
class Passage:
    """A packet that came to a queue."""

    came_s: float
    # `None` where it was dropped.
    left_s: float | None
    # The port of its sender.
    flow: int
    size_bytes: int
    # Whether the queue has marked it.
    is_marked: bool
    is_syn: bool


def captured(file: Path, origin_ns: int) -> Iterator[Captured]:
    """The packets of a capture file in pcap format with nanoseconds; times are from `origin_ns` on."""
    data = file.read_bytes()
    if len(data) < FILE_HEADER or struct.unpack_from("<I", data)[0] != MAGIC:
        raise BenchError(f"{file} is no capture with nanoseconds: tcpdump writes one by --time-stamp-precision=nano")
    at = FILE_HEADER
    while at + PACKET_HEADER <= len(data):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", data, at)
        at += PACKET_HEADER
        ip = data[at + ETHERNET : at + kept]
        at += kept
        header = (ip[0] & 15) * 4
        size, identification = struct.unpack_from(">HH", ip, 2)
        port, _, sequence = struct.unpack_from(">HHI", ip, header)
        key = (port, identification, sequence)
        marked = ip[1] & 3 == CONGESTION_EXPERIENCED
        time_s = (seconds * 1_000_000_000 + nanoseconds - origin_ns) / 1e9
        yield Captured(time_s, key, size, marked, bool(ip[header + 13] & SYN))


def passages(came: Path, left: Path, origin_ns: int) -> list[Passage]:
    """Every packet that came, in this order; times are from `origin_ns` on."""
    departures = {packet.key: packet for packet in captured(left, origin_ns)}
    found = []
    for packet in captured(came, origin_ns):
        departure = departures.get(packet.key)
        found.append(
            Passage(
                packet.time_s,
                departure.time_s if departure else None,
                packet.key[0],
                packet.size_bytes,
                departure is not None and departure.is_marked and not packet.is_marked,
                packet.is_syn,
            )
        )
    return found


def waits(found: Sequence[Passage], *, dropped_at_head: bool) -> list[float]:
    """How long each packet stood in the queue, in seconds.

    A packet that is dropped as it comes stands there for no time. One that a discipline drops at the head of its flow's
    queue does so until the flow's next packet leaves.
    """
    until: dict[int, float] = {}
    times = []
    for packet in reversed(found):
        if packet.left_s is not None:
            until[packet.flow] = packet.left_s
            times.append(packet.left_s - packet.came_s)
        else:
            ends = until.get(packet.flow, packet.came_s) if dropped_at_head else packet.came_s
            times.append(max(ends - packet.came_s, 0.0))
    return times[::-1]
