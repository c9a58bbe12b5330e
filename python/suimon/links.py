"""Links: how fast, how far, how much may wait."""

from __future__ import annotations

import os
import tomllib
from typing import Any

from suimon import _suimon
from suimon._check import optional_text, text
from suimon.errors import InputError

_TIME = 'a time with a unit, such as "90ms"'


class Link:
    """A wire between two hosts: a rate, a delay, a buffer.

    Quantities are texts with a unit, as the command takes them.

    Args:
        rate: How fast it sends: ``"2Mbit"``, ``"unlimited"``, a synthetic cell such as ``"lte-driving"``; or all of a
            link in one line, ``"2Mbit 180ms 96kB"``.
        delay: Propagation delay one way; the way back takes the same.
        rtt: Instead of ``delay``: round-trip time without queueing.
        **keys: What else a link in one line may say: ``buffer="96kB"`` (``"50 packets"``, ``"unbounded"``; default:
            1000 packets), ``loss="1%"`` at random after transmission, ``jitter="1ms"`` that keeps the order of
            packets, ``reorder="1%/10ms"`` for packets held back and for how long, ``detour="60ms/10s..15s"`` for a
            time on a longer route, ``outages="10s..15s,40s.."`` in which nothing gets through.

    Raises:
        InputError: A quantity is not accepted; the message names the argument.
    """

    def __init__(self, rate: str, *, delay: str | None = None, rtt: str | None = None, **keys: str | None) -> None:
        self._fill(
            "rate", text("rate", rate, 'a rate with a unit, such as "2Mbit", or a link in a line'), delay, rtt, keys
        )

    def _fill(self, argument: str, words: str, delay: object, rtt: object, keys: dict[str, Any]) -> None:
        times = optional_text("delay", delay, _TIME), optional_text("rtt", rtt, _TIME)
        self._spec = _suimon.LinkSpec.of_words(argument, words, *times, keys)

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
        return tomllib.loads(self._spec.tables())

    def __repr__(self) -> str:
        return f"suimon.{type(self).__name__}({self.line!r})"

    def __str__(self) -> str:
        return self.line


class Hsdpa(Link):
    """The downlink of an HSDPA cell to one terminal.

    Args:
        profile: Multipath profile and speed: ``"ST"``, ``"PA3"``, ``"VA30"``, ... (ITU-R M.1225, 3GPP TR 25.890).
        geometry: Own cell over other cells and noise, such as ``"10dB"``.
        delay: As of a `Link`, without what the radio takes.
        **keys: Keys of a scenario's ``hsdpa`` table, such as ``cqi_delay="6ms"``, and those of a `Link`.
    """

    def __init__(
        self,
        profile: str,
        geometry: str,
        *,
        delay: str | None = None,
        rtt: str | None = None,
        **keys: object,
    ) -> None:
        profile = text("profile", profile, 'a profile, such as "PA3"')
        geometry = "".join(text("geometry", geometry, 'decibels, such as "10dB"').split())
        self._fill("hsdpa", f"hsdpa {profile} {geometry}", delay, rtt, keys)


class Wifi(Link):
    """An 802.11 link on a medium of its own, that acknowledgements contend for too.

    Args:
        standard: ``"802.11b"``, ``"802.11a"`` or ``"802.11g"``.
        rate: A rate of that standard, such as ``"11Mbit"``.
        delay: As of a `Link`; a WLAN is near, so none by default.
        **keys: Keys of a scenario's ``[[medium]]``, such as ``cw_min=15``, and those of a `Link`.
    """

    def __init__(
        self,
        standard: str,
        rate: str,
        *,
        delay: str | None = None,
        rtt: str | None = None,
        **keys: object,
    ) -> None:
        standard = text("standard", standard, 'a standard, such as "802.11b"')
        rate = "".join(text("rate", rate, 'a rate of the standard, such as "11Mbit"').split())
        self._fill("wifi", f"wifi {standard} {rate}", delay, rtt, keys)


class Trace(Link):
    """A recorded link: a Mahimahi trace, or CSV with time and rate.

    Args:
        path: The file.
        delay: As of a `Link`.
        **keys: As of a `Link`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delay: str | None = None,
        rtt: str | None = None,
        **keys: str | None,
    ) -> None:
        try:
            name = os.fspath(path)
        except TypeError:
            raise InputError(f"path: {path!r} is no path; accepted: the path of a trace") from None
        times = optional_text("delay", delay, _TIME), optional_text("rtt", rtt, _TIME)
        self._spec = _suimon.LinkSpec.of_trace(name, *times, keys)
