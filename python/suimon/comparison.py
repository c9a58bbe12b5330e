"""Algorithms side by side over a link."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from suimon import _suimon
from suimon._check import count, items, optional_text, text
from suimon._check import seconds as seconds_text
from suimon._kernel import KERNELS, measured
from suimon.errors import InputError
from suimon.links import Link
from suimon.own import Algorithm, CongestionControl, PathScheduler, QueueDiscipline, named
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
    gateways: Sender | Iterable[Sender] = (),
    server_rtt: float | str | None = None,
    flows: int | str = 1,
    mixed: bool = False,
    call: bool = False,
    advise: bool = False,
    seconds: float | str | None = None,
    warmup: float | str = 0.0,
    size: str | None = None,
    window: str = "6MiB",
    profile: str = "linux-6",
    seed: int = 1,
    seeds: int = 1,
    on: str = "simulator",
    progress: bool = True,
) -> Result:
    """Compares senders, or queues, over a link, as ``suimon compare`` does; uses all cores.

    Args:
        link: The link; a text is one in a line, ``"2Mbit 180ms 96kB"`` or ``"20/5Mbit 60ms"``.
        senders: Congestion controls with settings, ``"fs-at+cubic:mode=fit"``; a receive window such as ``"drs"`` means
            Reno under it. Or subclasses of `CongestionControl`. Default: those worth comparing.
        queues: Queue disciplines in front of the link, each in runs of its own. Or subclasses of `QueueDiscipline`.
        gateways: A node at the near end of the servers' network splits each connection: its senders toward the user,
            such as ``"fs-at"``, compared with none.
        server_rtt: Round-trip time between that node and the servers, where there are ``gateways``. Default: 100 ms.
        flows: Flows of each sender; ``"30,50,30@100s"`` changes their number every 100 s.
        mixed: All senders share the link, instead of having it one after the other.
        call: Run a video call, a ping and small web pages during the load, and grade the call. The default if both
            directions have a rate, ``"20/5Mbit 60ms"``.
        advise: Try changes of queue, buffer and sender, and rank them by their effect on the call: `Result.advice`.
        seconds: When a run ends at the latest. Default: 60 s, or as long as ``flows`` says.
        warmup: Seconds left out of totals and percentiles.
        size: How much each flow sends, such as ``"10MB"``. Default: as much as it can.
        window: Receive buffer, the most that a receiver advertises.
        profile: The TCP stack as which both ends behave; `profiles` lists them.
        seed: The first seed of all randomness.
        seeds: How many seeds, a run each.
        on: Where it runs: ``"simulator"``; ``"lab"``, an unmodified kernel in virtual time, the same bytes each time;
            or ``"live"``, the kernel of this machine in real time, which needs root. The last two run the command
            ``suimon`` of the same version, and know no classes in Python.
        progress: Show a bar on standard error after two seconds, where that is a terminal.

    Raises:
        InputError: An argument is not accepted; the message names it.
    """
    given = locals()
    if not isinstance(link, Link):
        link = Link(text("link", link, 'a Link, or a line such as "2Mbit 180ms 96kB"'))
    return _compare(link._spec.fields, given, over_paths=False, on=on)


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
    window: str = "6MiB",
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
    given = locals()
    lines = [each.line if isinstance(each, Link) else text("paths", each, "Links, or lines") for each in paths]
    return _compare({"paths": "; ".join(lines)}, given, over_paths=True)


def _compare(over: dict[str, str], given: dict[str, Any], *, over_paths: bool, on: str = "simulator") -> Result:
    """Runs the comparison whose fields are ``over`` and the keywords of the caller."""
    fields: dict[str, object] = dict(over)
    for name, kind, *_ in _suimon.keywords(over_paths):
        value = _READERS[kind](name, given[name])
        if value is not None:
            fields[name] = value
    request = json.dumps(fields)
    if on == "simulator":
        return Result(_suimon.compare(request, given["progress"]))
    if on not in KERNELS:
        raise InputError(f"on: {on!r} is no place to run; accepted: simulator, {', '.join(KERNELS)}")
    for name in ("senders", "queues", "gateways"):
        for each in () if given[name] == () else items(name, given[name], _SENDERS):
            if isinstance(each, type):
                raise InputError(f"{name}: {each.__name__} is a class in Python; accepted with on={on!r}: names")
    return Result(measured(request, on))


def _names(role: type[Algorithm], accepted: str) -> Callable[[str, Any], list[str]]:
    """Reads algorithms of ``role``, by name or as classes; ``()`` leaves them to the request."""

    def read(argument: str, value: Any) -> list[str]:
        listed = () if value == () else items(argument, value, accepted)
        return [named(argument, each, role, accepted) for each in listed]

    return read


#: How the keywords of each kind are read.
_READERS: dict[str, Callable[[str, Any], object]] = {
    "senders": _names(CongestionControl, _SENDERS),
    "queues": _names(QueueDiscipline, _QUEUES),
    "schedulers": _names(PathScheduler, _SCHEDULERS),
    "counts": lambda argument, value: value if isinstance(value, str) else str(count(argument, value)),
    "time": lambda argument, value: None if value is None else seconds_text(argument, value),
    "bytes": lambda argument, value: optional_text(argument, value, _BYTES),
    "profile": lambda argument, value: text(argument, value, ", ".join(_suimon.profiles())),
    "number": count,
    "number or zero": lambda argument, value: count(argument, value, 0),
    "flag": lambda _, value: bool(value),
    "text": lambda argument, value: optional_text(argument, value, "text"),
}
