"""The roads beside the whole road: the same phones over other radios, with pages of measured sizes and a game."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measure import run

USERS = 4
SECONDS = 30
# Kibibytes that a page for mobile phones weighs, by percentile of all pages: HTTP Archive, Web Almanac 2022, "Page
# weight distribution by percentile".
WEIGHTS = {10: 445, 25: 990, 50: 2019, 75: 4042, 90: 8082}
# Browsers open so many connections to a host over HTTP/1.1.
CONNECTIONS = 6
# Seconds over which the users' first pages begin, and their second ones.
SPANS = [(3, 8), (13, 18)]
# A game's server sends each player 130 bytes on average, 50 ms apart (Feng and others, "A traffic analysis of a busy
# Counter-Strike server", 2002); IP and UDP take 28 more.
GAME = 'udp = { rate = "25.28kbit", packet = "158B" }'
UPLINK = '\n[link.reverse]\nrate = "2Mbit"\nbuffer = "250kB"'
OWN = f'rate = "4Mbit"\ndelay = "20ms"\nbuffer = "500kB"{UPLINK}'


@dataclass(frozen=True)
class Page:
    """What a user loads: the beginning or its span, as values of TOML, and the size of each connection."""

    begins: str
    sizes: list[str]


def weight(percentile: float) -> float:
    """Bytes of a page: straight lines between the measured percentiles, in the logarithm."""
    below = max(known for known in WEIGHTS if known <= percentile)
    above = min(known for known in WEIGHTS if known >= percentile)
    part = (percentile - below) / (above - below) if above > below else 0.0
    return 1024 * math.exp((1 - part) * math.log(WEIGHTS[below]) + part * math.log(WEIGHTS[above]))


def measured_pages(user: int) -> list[Page]:
    """The user's pages: all users' together lie at equal steps from the 10th to the 90th percentile."""
    found = []
    for nth, (early, late) in enumerate(SPANS):
        # One user's second page is as far above the median as the first is below.
        place = user - 1 if nth % 2 == 0 else 2 * USERS - user
        percentile = 10 + 80 * place / (len(SPANS) * USERS - 1)
        size = f"{weight(percentile) / CONNECTIONS:.0f}B"
        # Not drawn, since the connections would not begin together.
        begins = early + (late - early) * (user - 1) / USERS
        found.append(Page(f'"{begins:g}s"', [size] * CONNECTIONS))
    return found


def hsdpa(more: str = "") -> str:
    radio = f'profile = "PA3", geometry = "15dB", cell = "hsdpa", category = 10{more}'
    return f'hsdpa = {{ {radio} }}\ndelay = "10ms"\nbuffer = "400kB"'


def outages(user: int) -> str:
    """A second and three seconds without a radio, at other times for each phone."""
    return f'outages = ["{5 + user}s..{6 + user}s", "{16 + 2 * user}s..{19 + 2 * user}s"]'


@dataclass(frozen=True)
class Road:
    """What differs between the roads: the keys of a phone's own radio, those of the shared one, and their tables."""

    told: str
    own: Callable[[int], str] = lambda _: OWN
    shared: str = hsdpa()
    tables: str = ""


ROADS = {
    "web": Road("The radios of the whole road."),
    "lte": Road(
        "An LTE cell in place of 4 Mbit/s: a synthetic trace of a drive, for each phone a quarter of it later.",
        own=lambda user: f'trace = "lte-{user}.down"\ndelay = "20ms"\nbuffer = "500kB"{UPLINK}',
    ),
    "wifi": Road(
        "One 802.11g access point at 24 Mbit/s for all four phones in place of 4 Mbit/s for each, there and back.",
        own=lambda _: 'medium = "wlan"\ndelay = "2ms"\nbuffer = "500kB"\n[link.reverse]\nbuffer = "250kB"',
        tables='\n[[medium]]\nname = "wlan"\nstandard = "802.11g"\nrate = "24Mbit"\n',
    ),
    "handover": Road(
        "Each phone's own radio is gone for a second and later for three; the HSDPA cell changes every 10 s.",
        own=lambda user: OWN.replace(UPLINK, f"\n{outages(user)}{UPLINK}"),
        shared=hsdpa(', handover_every = "10s"'),
    ),
}


def write_traces(suimon: Path, folder: Path) -> None:
    """The trace of each phone's LTE cell: all of the same one, which begins elsewhere."""
    what = ["--like", "lte-driving", "--mean", "4Mbit", "--length", f"{SECONDS}s"]
    times = [int(time) for time in run([str(suimon), "trace", "generate", *what], "a trace").split()]
    # The last line is the trace's length.
    length = times[-1]
    for user in range(1, USERS + 1):
        later = sorted((time + length * (user - 1) // USERS) % length or length for time in times)
        (folder / f"lte-{user}.down").write_text("".join(f"{time}\n" for time in later))
