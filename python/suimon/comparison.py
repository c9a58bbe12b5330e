"""Algorithms side by side over a link."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from suimon import _check, _suimon
from suimon._check import count, items, optional_text, text
from suimon.links import Link
from suimon.own import CongestionControl, PathScheduler, QueueDiscipline, named
from suimon.result import Result

#: What a flow runs: a name with settings, or a class in Python.
Sender = str | type[CongestionControl]
#: What waits in front of a link: a name with settings, or a class in Python.
Queue = str | type[QueueDiscipline]
#: What gives data to paths: a name with settings, or a class in Python.
Scheduler = str | type[PathScheduler]

_SENDERS = 'names such as "cubic" or "fs-at+cubic:mode=fit"; suimon.algorithms() lists them'
_QUEUES = 'names such as "codel" or "red:max_p=0.02"; suimon.algorithms() lists them'
_SCHEDULERS = 'names such as "ecf" or "look-ahead"; suimon.algorithms() lists them'
_BYTES = 'bytes with a unit, such as "10MB"'


def compare(
    link: Link | str,
    senders: Sender | Iterable[Sender] = (),
    *,
    queues: Queue | Iterable[Queue] = "droptail",
    flows: int | str = 1,
    mixed: bool = False,
    seconds: float | str | None = None,
    warmup: float | str = 0.0,
    size: str | None = None,
    window: str | None = None,
    profile: str = "linux-6",
    seed: int = 1,
    seeds: int = 1,
    progress: bool = True,
) -> Result:
    """Compares senders, or queues, over a link, as ``suimon compare`` does; uses all cores.

    Args:
        link: The link; a text is one in a line, ``"2Mbit 180ms 96kB"``.
        senders: Congestion controls with settings, ``"fs-at+cubic:mode=fit"``; a receive window such as ``"drs"`` means
            Reno under it. Or subclasses of `CongestionControl`. Default: those worth comparing.
        queues: Queue disciplines in front of the link, each in runs of its own. Or subclasses of `QueueDiscipline`.
        flows: Flows of each sender; ``"30,50,30@100s"`` changes their number every 100 s.
        mixed: All senders share the link, instead of having it one after the other.
        seconds: When a run ends at the latest. Default: 60 s, or as long as ``flows`` says.
        warmup: Seconds left out of totals and percentiles.
        size: How much each flow sends, such as ``"10MB"``. Default: as much as it can.
        window: Receive buffer. Default: ``"6MiB"``.
        profile: The TCP stack as which both ends behave; `profiles` lists them.
        seed: The first seed of all randomness.
        seeds: How many seeds, a run each.
        progress: Show a bar on standard error after two seconds, where that is a terminal.

    Raises:
        InputError: An argument is not accepted; the message names it.
    """
    if not isinstance(link, Link):
        link = Link(text("link", link, 'a Link, or a line such as "2Mbit 180ms 96kB"'))
    names = []
    if senders != ():
        names = [named("senders", each, CongestionControl, _SENDERS) for each in items("senders", senders, _SENDERS)]
    disciplines = [named("queues", each, QueueDiscipline, _QUEUES) for each in items("queues", queues, _QUEUES)]
    counts = flows if isinstance(flows, str) else str(count("flows", flows))
    shared, of_runs = _shared(seconds, warmup, size, window, profile, seed, seeds)
    options: list[tuple[str, str | bool]] = [
        ("cc", ",".join(names)),
        ("queue", ",".join(disciplines) if disciplines != ["droptail"] else ""),
        ("flows", counts if counts != "1" else ""),
        ("mixed", mixed),
        *of_runs,
    ]
    findings = _suimon.compare(
        link._spec,
        senders=names,
        queues=disciplines,
        flows=counts,
        mixed=bool(mixed),
        **shared,
        command=f"suimon compare {link._spec.option}{_words(options)}",
        progress=progress,
    )
    return Result(findings)


def compare_paths(
    paths: Sequence[Link | str],
    schedulers: Scheduler | Iterable[Scheduler] = (),
    *,
    senders: Sender | Iterable[Sender] = (),
    send_buffer: str | None = None,
    receive_buffer: str | None = None,
    seconds: float | str | None = None,
    warmup: float | str = 0.0,
    size: str | None = None,
    window: str | None = None,
    profile: str = "linux-6",
    seed: int = 1,
    seeds: int = 1,
    progress: bool = True,
) -> Result:
    """Compares path schedulers for one stream over several links as ``suimon compare --paths``, beside each link alone.

    Args:
        paths: The links; a scheduler has a choice from two on.
        schedulers: Path schedulers, or subclasses of `PathScheduler`. Default: those worth comparing.
        senders: Congestion controls of the flows. Default: CUBIC.
        send_buffer: What each flow may hold, unsent or unacknowledged. Default: ``"4MiB"``.
        receive_buffer: What may wait at the receiver for data of other flows. Default: ``"4MiB"``.
        seconds: As of `compare`, like all others.

    Raises:
        InputError: An argument is not accepted; the message names it.
    """
    lines = [each.line if isinstance(each, Link) else text("paths", each, "Links, or lines") for each in paths]
    chosen, names = [], []
    if schedulers != ():
        listed = items("schedulers", schedulers, _SCHEDULERS)
        chosen = [named("schedulers", each, PathScheduler, _SCHEDULERS) for each in listed]
    if senders != ():
        names = [named("senders", each, CongestionControl, _SENDERS) for each in items("senders", senders, _SENDERS)]
    shared, of_runs = _shared(seconds, warmup, size, window, profile, seed, seeds)
    options: list[tuple[str, str | bool]] = [
        ("scheduler", ",".join(chosen)),
        ("cc", ",".join(names)),
        ("send-buffer", optional_text("send_buffer", send_buffer, _BYTES) or ""),
        ("receive-buffer", optional_text("receive_buffer", receive_buffer, _BYTES) or ""),
        *of_runs,
    ]
    findings = _suimon.compare_paths(
        lines,
        schedulers=chosen,
        senders=names,
        send_buffer=send_buffer,
        receive_buffer=receive_buffer,
        **shared,
        command=f"suimon compare --paths {shlex.quote('; '.join(lines))}{_words(options)}",
        progress=progress,
    )
    return Result(findings)


#: What the command takes where an option is not given.
_DEFAULTS: dict[str, object] = {"warmup": "0s", "profile": "linux-6", "seed": 1, "seeds": 1}


def _shared(
    seconds: float | str | None,
    warmup: float | str,
    size: str | None,
    window: str | None,
    profile: str,
    seed: int,
    seeds: int,
) -> tuple[dict[str, Any], list[tuple[str, str | bool]]]:
    """What every comparison says of its runs, checked: keywords, and the command's options of the same names."""
    keywords = {
        "duration": None if seconds is None else _check.seconds("seconds", seconds),
        "warmup": _check.seconds("warmup", warmup),
        "size": optional_text("size", size, _BYTES),
        "window": optional_text("window", window, _BYTES),
        "profile": text("profile", profile, ", ".join(_suimon.profiles())),
        "seed": count("seed", seed, 0),
        "seeds": count("seeds", seeds),
    }
    return keywords, [(name, str(value)) for name, value in keywords.items() if value != _DEFAULTS.get(name)]


def _words(options: list[tuple[str, str | bool]]) -> str:
    """The options that say something, as a shell takes them."""
    words = ""
    for name, value in options:
        if value:
            words += f" --{name}" if value is True else f" --{name} {shlex.quote(str(value))}"
    return words
