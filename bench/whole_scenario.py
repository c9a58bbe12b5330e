"""The scenario of the whole road, which scenarios/whole.toml holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

USERS = 4
SEEDS = 20
PARTS = ["fs-at", "rtt-aqm", "even", "least-buffered"]
DEPLOYED = "bbr, fq-codel, lowest-rtt"
AHEAD = "fs-at + rtt-aqm + even + look-ahead"
TODAY = "none"
# Bytes of a page over one connection for each radio, and the span in which each begins.
PAGES = [("300kB", "3s", "8s"), ("700kB", "11s", "16s"), ("1500kB", "19s", "24s")]
RADIOS = ["a", "b"]

HEAD = '''# The whole road: written by `python3 bench/whole.py --write-scenario`.
name = "whole"
description = """Four phones with two radios each: 4 Mbit/s for each phone alone, and an HSDPA cell that all share. \\
Each phone downloads, loads pages and is in a call; other customers share the transit link."""
duration = "30s"
stop_when_complete = false
record_interval = "off"
record_events = 0
seeds = 20

# From the servers to the network of the phones, shared with other customers.
[[link]]
name = "transit"
between = ["exchange", "core"]
rate = "32Mbit"
delay = "2ms"
buffer = "200kB"
reported = true

# To the gateway of each radio, for all phones.
[[link]]
name = "backhaul-a"
between = ["core", "gateway-a"]
rate = "14Mbit"
delay = "2ms"
buffer = "175kB"

[[link]]
name = "backhaul-b"
between = ["core", "gateway-b"]
rate = "8Mbit"
delay = "2ms"
buffer = "100kB"

[[link]]
name = "home"
between = ["core", "home"]
rate = "100Mbit"
delay = "5ms"
reported = false

[[cell]]
name = "hsdpa"
'''


def link(name: str, ends: tuple[str, str], keys: str) -> str:
    return f'\n[[link]]\nname = "{name}"\nbetween = ["{ends[0]}", "{ends[1]}"]\n{keys}\n'


def flow(name: str, source: str, sink: str, via: Iterable[str], keys: str) -> str:
    way = ", ".join(f'"{one}"' for one in via)
    return f'\n[[flow]]\nname = "{name}"\nfrom = "{source}"\nto = "{sink}"\nvia = [{way}]\n{keys}\n'


def server_of(user: int) -> str:
    """Half of the users' downloads come from senders of one kind, half from the other."""
    return "cubic" if user % 2 else "compound"


def streams() -> list[tuple[str, int, str, str]]:
    """Each stream to a phone: its name, its user, the keys of its flows and its size."""
    found = []
    for user in range(1, USERS + 1):
        begins = 'start = ["0s", "1s"]'
        found.append((f"download-{user}", user, begins, ""))
        for nth, (size, early, late) in enumerate(PAGES, 1):
            found.append((f"page-{user}-{nth}", user, f'start = ["{early}", "{late}"]', f'size = "{size}"'))
    return found


def way_to(radio: str, user: int, source: str) -> list[str]:
    return [source, "transit", f"backhaul-{radio}", f"radio-{radio}-{user}"]


def name_of(parts: Iterable[str]) -> str:
    return " + ".join(part for part in PARTS if part in set(parts)) or TODAY


def settings(parts: Iterable[str]) -> dict[str, str]:
    """What a combination of parts sets, as values of TOML."""
    chosen = set(parts)
    found = {}
    if "even" in chosen:
        found["link.transit.queue"] = '"even"'
    if "rtt-aqm" in chosen:
        found["link.backhaul-a.queue"] = found["link.backhaul-b.queue"] = '"rtt-aqm"'
    for name, _, _, _ in streams():
        if "least-buffered" not in chosen:
            # One radio for everything: the other's flow carries a byte, and none of the stream.
            found[f"aggregate.{name}.flows"] = f'["{name}-a"]'
            found[f"flow.{name}-b.size"] = '"1B"'
        if "fs-at" in chosen:
            for radio in RADIOS:
                found[f"flow.{name}-{radio}.gateway"] = f'{{ node = "gateway-{radio}", cc = "fs-at" }}'
    return found


def deployed() -> dict[str, str]:
    """What the best of today's networks have: BBR, fq_codel in every router, and multipath TCP's scheduler."""
    found = {f"link.{name}.queue": '"fq-codel"' for name in ("transit", "backhaul-a", "backhaul-b")}
    for name, _, _, _ in streams():
        found[f"aggregate.{name}.scheduler"] = '"lowest-rtt"'
        for radio in RADIOS:
            found[f"flow.{name}-{radio}.cc"] = '"bbr"'
    return found


def setups() -> list[tuple[str, dict[str, str]]]:
    """Each combination: its name and its settings."""
    combinations = [chosen for count in range(len(PARTS) + 1) for chosen in itertools.combinations(PARTS, count)]
    found = [(name_of(chosen), settings(chosen)) for chosen in combinations]
    ahead = settings(PARTS) | {f"aggregate.{name}.scheduler": '"look-ahead"' for name, _, _, _ in streams()}
    return [*found, (AHEAD, ahead), (DEPLOYED, deployed())]


def scenario(only: Sequence[str] = ()) -> str:
    """The road under each combination, or under those of these names."""
    text = HEAD
    for server, delay in (("cubic", "15ms"), ("compound", "15ms"), ("caller", "5ms")):
        text += link(server, (f"{server}-server", "exchange"), f'rate = "1Gbit"\ndelay = "{delay}"\nreported = false')
    for user in range(1, USERS + 1):
        radio = 'rate = "4Mbit"\ndelay = "20ms"\nbuffer = "500kB"\n[link.reverse]\nrate = "2Mbit"\nbuffer = "250kB"'
        text += link(f"radio-a-{user}", ("gateway-a", f"phone-{user}"), radio)
        radio = 'hsdpa = { profile = "PA3", geometry = "15dB", cell = "hsdpa", category = 10 }'
        text += link(f"radio-b-{user}", ("gateway-b", f"phone-{user}"), f'{radio}\ndelay = "10ms"\nbuffer = "400kB"')
    ecn = "[flow.stack]\necn = true"
    for name, user, keys, size in streams():
        source = server_of(user)
        for radio in RADIOS:
            cc = f'cc = "{source}"'
            text += flow(
                f"{name}-{radio}",
                f"{source}-server",
                f"phone-{user}",
                way_to(radio, user, source),
                f"{keys}\n{cc}\n{ecn}",
            )
        text += f'\n[[aggregate]]\nname = "{name}"\nflows = ["{name}-a", "{name}-b"]\n'
        text += f'scheduler = "least-buffered"\nreconnect = "off"\n{size}\n'
    for user in range(1, USERS + 1):
        call = 'start = ["0s", "20ms"]\nudp = { rate = "80kbit", packet = "200B" }'
        text += flow(f"call-{user}", "caller-server", f"phone-{user}", way_to("a", user, "caller"), call)
    upload = f'start = ["9s", "12s"]\nsize = "1MB"\ncc = "cubic"\n{ecn}'
    back = [f"{one}-reverse" for one in reversed(way_to("a", USERS, "cubic"))]
    text += flow("upload", f"phone-{USERS}", "cubic-server", back, upload)
    for source in ("cubic", "compound"):
        keys = f'start = ["0s", "1s"]\ncc = "{source}"\n{ecn}'
        text += flow(f"home-{source}", f"{source}-server", "home", [source, "transit", "home"], keys)
    chosen = [(name, keys) for name, keys in setups() if not only or name in only]
    labels = ", ".join(f'"{name}"' for name, _ in chosen)
    values = ",\n".join(
        "    { " + ", ".join(f'"{key}" = {value}' for key, value in keys.items()) + " }" for _, keys in chosen
    )
    return f'{text}\n[[matrix]]\nname = "setup"\nset = "*"\nlabels = [{labels}]\nvalues = [\n{values},\n]\n'
