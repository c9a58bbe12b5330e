"""Links: how fast, how far, how much may wait."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from suimon import _suimon
from suimon._check import optional_text, text
from suimon.errors import InputError

_TIME = 'a time with a unit, such as "90ms"'
_BUFFER = 'packets or bytes, such as "50 packets" or "96kB", or "unbounded"'


class Link:
    """A wire between two hosts: a rate, a delay, a buffer.

    Quantities are texts with a unit, as the command takes them.

    Args:
        rate: How fast it sends: ``"2Mbit"``, ``"unlimited"``, a synthetic cell such as ``"lte-driving"``; or all of a
            link in one line, ``"2Mbit 180ms 96kB"``.
        delay: Propagation delay one way; the way back takes the same.
        rtt: Instead of ``delay``: round-trip time without queueing.
        buffer: What may wait: ``"96kB"``, ``"50 packets"``, ``"unbounded"``. Default: 1000 packets.
        loss: Random loss after transmission, such as ``"1%"``.
        jitter: Extra delay, uniform from zero to this; packets keep their order.
        reorder: Packets held back and for how long, such as ``"1%/10ms"``.
        outages: When nothing gets through, such as ``"10s..15s,40s.."``.

    Raises:
        InputError: A quantity is not accepted; the message names the argument.
    """

    def __init__(
        self,
        rate: str,
        *,
        delay: str | None = None,
        rtt: str | None = None,
        buffer: str | None = None,
        loss: str | None = None,
        jitter: str | None = None,
        reorder: str | None = None,
        outages: str | None = None,
    ) -> None:
        rate = text("rate", rate, 'a rate with a unit, such as "2Mbit", or a link in a line')
        parts = (delay, rtt, buffer, loss, jitter, reorder, outages)
        if len(_words(rate)) > 1 and all(part is None for part in parts):
            self._spec = _suimon.LinkSpec.of_line(rate)
            self._keys = _keys_of_line(rate)
            return
        self._fill("rate", rate, None, *parts)

    def _fill(
        self,
        argument: str,
        capacity: str | None,
        trace: str | None,
        delay: str | None,
        rtt: str | None,
        buffer: str | None,
        loss: str | None,
        jitter: str | None,
        reorder: str | None,
        outages: str | None,
    ) -> None:
        self._spec = _suimon.LinkSpec.of_parts(
            argument=argument,
            capacity=capacity,
            trace=trace,
            delay=optional_text("delay", delay, _TIME),
            rtt=optional_text("rtt", rtt, _TIME),
            buffer=optional_text("buffer", buffer, _BUFFER),
            loss=optional_text("loss", loss, 'a probability, such as "1%"'),
            jitter=optional_text("jitter", jitter, _TIME),
            reorder=optional_text("reorder", reorder, 'SHARE/DELAY, such as "1%/10ms"'),
            outages=optional_text("outages", outages, 'periods, such as "10s..15s"'),
        )
        one_way = delay if delay is not None else f"{round(self.rtt_s * 1e9) // 2}ns"
        options = {
            "delay": one_way,
            "buffer": buffer,
            "loss": loss,
            "jitter": jitter,
            "reordering": _reordering(reorder),
            "outages": None if outages is None else outages.split(","),
        }
        self._keys = {key: value for key, value in options.items() if value is not None}
        self._keys["capacity"] = {"trace": str(Path(trace).absolute())} if trace is not None else capacity

    @property
    def line(self) -> str:
        """The link in one line, as ``suimon compare --link`` takes it."""
        return self._spec.line

    @property
    def rtt_s(self) -> float:
        """Round-trip time without queueing, in seconds."""
        return self._spec.rtt_s

    def _tables(self) -> dict[str, Any]:
        """The tables of a scenario that describe it: ``link``, and ``medium`` where it has one."""
        keys = dict(self._keys)
        capacity = keys.pop("capacity")
        reverse: dict[str, object] = {"rate": "unlimited", "buffer": "unbounded"}
        if isinstance(capacity, dict):
            return {"link": {**capacity, **keys, "reverse": reverse}}
        kind, *words = capacity.split()
        settings = {name: _plain(value) for name, _, value in (word.partition("=") for word in words) if value}
        if kind == "hsdpa":
            terminal = {"profile": words[0], "geometry": words[1], **settings}
            return {"link": {"hsdpa": terminal, **keys, "reverse": {"buffer": "unbounded"}}}
        if kind == "wifi":
            medium = {"name": "wifi", "standard": words[0], "rate": words[1], **settings}
            return {"medium": [medium], "link": {"medium": "wifi", **keys, "reverse": {"buffer": "unbounded"}}}
        if "-" in capacity and "=" not in capacity:
            accepted = f"a trace of it, as `suimon trace generate --like {capacity}` prints"
            raise InputError(f'link: a scenario has no "{capacity}"; accepted: {accepted}')
        name, _, file = capacity.partition("=")
        rate = {name: str(Path(file).absolute())} if name in ("trace", "schedule") else {"rate": capacity}
        return {"link": {**rate, **keys, "reverse": reverse}}

    def __repr__(self) -> str:
        return f"suimon.{type(self).__name__}({self.line!r})"

    def __str__(self) -> str:
        return self.line


def _reordering(reorder: str | None) -> dict[str, str] | None:
    """``"1%/10ms"`` as a scenario says it."""
    if reorder is None:
        return None
    probability, _, delay = reorder.partition("/")
    return {"probability": probability, "delay": delay}


def _keys_of_line(line: str) -> dict[str, Any]:
    """The keys of a link that ``line`` describes, which reads as the command's."""
    words = _words(line)
    options = [word for word in words if word.partition("=")[0] in ("loss", "jitter", "reorder", "outages")]
    words = [word for word in words if word not in options]
    settings = [word for word in words[1:] if "=" in word]
    words = [word for word in words if word not in settings]
    head = 3 if words[0] in ("hsdpa", "wifi") else 1
    rtt_and_buffer = words[head:]
    keys: dict[str, Any] = {"capacity": " ".join(words[:head] + settings)}
    if rtt_and_buffer:
        keys["delay"] = _half(rtt_and_buffer[0])
    if len(rtt_and_buffer) > 1:
        keys["buffer"] = rtt_and_buffer[1]
    for word in options:
        name, _, value = word.partition("=")
        if name == "reorder":
            keys["reordering"] = _reordering(value)
        else:
            keys[name] = value.split(",") if name == "outages" else value
    return keys


def _words(line: str) -> list[str]:
    """The words of a line; a number and its unit are one."""
    return re.sub(r"(?<=\d)\s+(?=[A-Za-zµ]+(?:\s|$))", "", line).split()


def _half(time: str) -> str:
    number = re.match(r"[0-9.]+", time)
    return f"{float(number[0]) / 2}{time[number.end() :]}" if number else time


def _plain(value: str) -> str | int | bool:
    """A word as TOML has it: counts and flags without quotes."""
    return {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)


def _settings(settings: dict[str, Any]) -> list[str]:
    def word(name: str, value: object) -> str:
        shown = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        joined = "".join(str(shown).split())
        if not joined:
            raise InputError(f"{name}: is empty; accepted: a value, as in scenarios")
        return f"{name}={joined}"

    return [word(name, value) for name, value in settings.items()]


class Hsdpa(Link):
    """The downlink of an HSDPA cell to one terminal.

    Args:
        profile: Multipath profile and speed: ``"ST"``, ``"PA3"``, ``"VA30"``, ... (ITU-R M.1225, 3GPP TR 25.890).
        geometry: Own cell over other cells and noise, such as ``"10dB"``.
        delay: As of a `Link`, without what the radio takes.
        **settings: Keys of a scenario's ``hsdpa`` table, such as ``cqi_delay="6ms"``.
    """

    def __init__(
        self,
        profile: str,
        geometry: str,
        *,
        delay: str | None = None,
        rtt: str | None = None,
        buffer: str | None = None,
        loss: str | None = None,
        jitter: str | None = None,
        reorder: str | None = None,
        outages: str | None = None,
        **settings: object,
    ) -> None:
        profile = text("profile", profile, 'a profile, such as "PA3"')
        geometry = text("geometry", geometry, 'decibels, such as "10dB"')
        words = ["hsdpa", profile, "".join(geometry.split()), *_settings(settings)]
        self._fill("hsdpa", " ".join(words), None, delay, rtt, buffer, loss, jitter, reorder, outages)


class Wifi(Link):
    """An 802.11 link on a medium of its own, that acknowledgements contend for too.

    Args:
        standard: ``"802.11b"``, ``"802.11a"`` or ``"802.11g"``.
        rate: A rate of that standard, such as ``"11Mbit"``.
        delay: As of a `Link`; a WLAN is near, so none by default.
        **settings: Keys of a scenario's ``[[medium]]``, such as ``cw_min=15``.
    """

    def __init__(
        self,
        standard: str,
        rate: str,
        *,
        delay: str | None = None,
        rtt: str | None = None,
        buffer: str | None = None,
        loss: str | None = None,
        jitter: str | None = None,
        reorder: str | None = None,
        outages: str | None = None,
        **settings: object,
    ) -> None:
        standard = text("standard", standard, 'a standard, such as "802.11b"')
        rate = text("rate", rate, 'a rate of the standard, such as "11Mbit"')
        words = ["wifi", standard, "".join(rate.split()), *_settings(settings)]
        self._fill("wifi", " ".join(words), None, delay, rtt, buffer, loss, jitter, reorder, outages)


class Trace(Link):
    """A recorded link: a Mahimahi trace, or CSV with time and rate.

    Args:
        path: The file.
        delay: As of a `Link`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delay: str | None = None,
        rtt: str | None = None,
        buffer: str | None = None,
        loss: str | None = None,
        jitter: str | None = None,
        reorder: str | None = None,
        outages: str | None = None,
    ) -> None:
        try:
            name = os.fspath(path)
        except TypeError:
            raise InputError(f"path: {path!r} is no path; accepted: the path of a trace") from None
        self._fill("path", None, name, delay, rtt, buffer, loss, jitter, reorder, outages)
