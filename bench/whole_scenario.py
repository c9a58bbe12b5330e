"""The scenario of the whole road, which scenarios/whole.toml holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from whole_roads import GAME, ROADS, SECONDS, USERS, Page, Road, measured_pages

SEEDS = 20
PARTS = ["fs-at", "rtt-aqm", "even", "least-buffered"]
DEPLOYED = "bbr, fq-codel, lowest-rtt"
AHEAD = "fs-at + rtt-aqm + even + look-ahead"
TODAY = "none"
# A page over one connection for each radio.
PAGES = [Page('["3s", "8s"]', ["300kB"]), Page('["11s", "16s"]', ["700kB"]), Page('["19s", "24s"]', ["1500kB"])]
RADIOS = ["a", "b"]
WHOLE = Road(
    "Four phones with two radios each: 4 Mbit/s for each phone alone, and an HSDPA cell that all share. "
    "Each phone downloads, loads pages and is in a call; other customers share the transit link."
)

HEAD = """stop_when_complete = false
record_interval = "off"
record_events = 0

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
"""


def link(name: str, ends: tuple[str, str], keys: str) -> str:
    return f'\n[[link]]\nname = "{name}"\nbetween = ["{ends[0]}", "{ends[1]}"]\n{keys}\n'


def flow(name: str, source: str, sink: str, via: Iterable[str], keys: str) -> str:
    way = ", ".join(f'"{one}"' for one in via)
    return f'\n[[flow]]\nname = "{name}"\nfrom = "{source}"\nto = "{sink}"\nvia = [{way}]\n{keys}\n'


def server_of(user: int) -> str:
    """Half of the users' downloads come from senders of one kind, half from the other."""
    return "cubic" if user % 2 else "compound"


def pages(user: int, name: str) -> list[Page]:
    """The pages that a user loads on this road."""
    return PAGES if name == "whole" else measured_pages(user)


def streams(name: str) -> list[tuple[str, int, str, str]]:
    """Each stream to a phone: its name, its user, the keys of its flows and its size."""
    found = []
    for user in range(1, USERS + 1):
        found.append((f"download-{user}", user, 'start = ["0s", "1s"]', ""))
        for nth, page in enumerate(pages(user, name), 1):
            for connection, size in enumerate(page.sizes, 1):
                of_page = f"page-{user}-{nth}" + (f"-{connection}" if len(page.sizes) > 1 else "")
                found.append((of_page, user, f"start = {page.begins}", f'size = "{size}"'))
    return found


def way_to(radio: str, user: int, source: str) -> list[str]:
    return [source, "transit", f"backhaul-{radio}", f"radio-{radio}-{user}"]


def name_of(parts: Iterable[str]) -> str:
    return " + ".join(part for part in PARTS if part in set(parts)) or TODAY


def settings(parts: Iterable[str], road: str) -> dict[str, str]:
    """What a combination of parts sets, as values of TOML."""
    chosen = set(parts)
    found = {}
    if "even" in chosen:
        found["link.transit.queue"] = '"even"'
    if "rtt-aqm" in chosen:
        found["link.backhaul-a.queue"] = found["link.backhaul-b.queue"] = '"rtt-aqm"'
    for name, _, _, _ in streams(road):
        if "least-buffered" not in chosen:
            # One radio for everything: the other's flow carries a byte, and none of the stream.
            found[f"aggregate.{name}.flows"] = f'["{name}-a"]'
            found[f"flow.{name}-b.size"] = '"1B"'
        if "fs-at" in chosen:
            for radio in RADIOS:
                found[f"flow.{name}-{radio}.gateway"] = f'{{ node = "gateway-{radio}", cc = "fs-at" }}'
    return found


def deployed(road: str) -> dict[str, str]:
    """What the best of today's networks have: BBR, fq_codel in every router, and multipath TCP's scheduler."""
    found = {f"link.{name}.queue": '"fq-codel"' for name in ("transit", "backhaul-a", "backhaul-b")}
    for name, _, _, _ in streams(road):
        found[f"aggregate.{name}.scheduler"] = '"lowest-rtt"'
        for radio in RADIOS:
            found[f"flow.{name}-{radio}.cc"] = '"bbr"'
    return found


def setups(road: str) -> list[tuple[str, dict[str, str]]]:
    """Each combination on this road: its name and its settings. Roads beside the whole one have fewer."""
    counts = range(len(PARTS) + 1) if road == "whole" else (0, 1, len(PARTS))
    combinations = [chosen for count in counts for chosen in itertools.combinations(PARTS, count)]
    found = [(name_of(chosen), settings(chosen, road)) for chosen in combinations]
    look_ahead = {f"aggregate.{name}.scheduler": '"look-ahead"' for name, _, _, _ in streams(road)}
    return [*found, (AHEAD, settings(PARTS, road) | look_ahead), (DEPLOYED, deployed(road))]


def scenario(only: Sequence[str] = (), name: str = "whole") -> str:
    """This road under each combination, or under those of these names."""
    road = WHOLE if name == "whole" else ROADS[name]
    text = f'name = "{name}"\ndescription = "{road.told}"\nduration = "{SECONDS}s"\nseeds = {SEEDS}\n'
    text += HEAD + road.tables
    for server, delay in (("cubic", "15ms"), ("compound", "15ms"), ("caller", "5ms")):
        text += link(server, (f"{server}-server", "exchange"), f'rate = "1Gbit"\ndelay = "{delay}"\nreported = false')
    for user in range(1, USERS + 1):
        text += link(f"radio-a-{user}", ("gateway-a", f"phone-{user}"), road.own(user))
        text += link(f"radio-b-{user}", ("gateway-b", f"phone-{user}"), road.shared)
    ecn = "[flow.stack]\necn = true"
    for stream, user, keys, size in streams(name):
        source = server_of(user)
        for radio in RADIOS:
            cc = f'cc = "{source}"'
            text += flow(
                f"{stream}-{radio}",
                f"{source}-server",
                f"phone-{user}",
                way_to(radio, user, source),
                f"{keys}\n{cc}\n{ecn}",
            )
        text += f'\n[[aggregate]]\nname = "{stream}"\nflows = ["{stream}-a", "{stream}-b"]\n'
        text += f'scheduler = "least-buffered"\nreconnect = "off"\n{size}\n'
    for user in range(1, USERS + 1):
        to_phone = "caller-server", f"phone-{user}", way_to("a", user, "caller")
        text += flow(f"call-{user}", *to_phone, 'start = ["0s", "20ms"]\nudp = { rate = "80kbit", packet = "200B" }')
        if name != "whole":
            text += flow(f"game-{user}", *to_phone, f'start = ["0s", "50ms"]\n{GAME}')
    upload = f'start = ["9s", "12s"]\nsize = "1MB"\ncc = "cubic"\n{ecn}'
    back = [f"{one}-reverse" for one in reversed(way_to("a", USERS, "cubic"))]
    text += flow("upload", f"phone-{USERS}", "cubic-server", back, upload)
    for source in ("cubic", "compound"):
        keys = f'start = ["0s", "1s"]\ncc = "{source}"\n{ecn}'
        text += flow(f"home-{source}", f"{source}-server", "home", [source, "transit", "home"], keys)
    chosen = [(setup, keys) for setup, keys in setups(name) if not only or setup in only]
    labels = ", ".join(f'"{setup}"' for setup, _ in chosen)
    values = ",\n".join(
        "    { " + ", ".join(f'"{key}" = {value}' for key, value in keys.items()) + " }" for _, keys in chosen
    )
    matrix = f'\n[[matrix]]\nname = "setup"\nset = "*"\nlabels = [{labels}]\nvalues = [\n{values},\n]\n'
    return f"# Written by bench/whole.py.\n{text}{matrix}"
