"""Algorithms in Python: for an idea that should take an hour.

Subclass `CongestionControl`, `QueueDiscipline` or `PathScheduler` and hand the class to `compare`, or name it in a
scenario after `register`. Keywords of ``__init__`` with a number or a flag as their default become parameters:
``"mine:beta=0.5"``. Each flow, queue or stream has an object of its own.

An algorithm sees what those in Rust see, at the same moments, so it can move there line by line. It must not draw
random numbers but from a generator that it seeds itself, or runs do not repeat.
"""

from __future__ import annotations

import inspect
import re
from typing import ClassVar, TypeVar

from suimon import _suimon
from suimon._suimon import Ack, Congestion, Delivery, Limits, Packet, SendState
from suimon.errors import InputError


class Algorithm:
    """What all algorithms in Python have."""

    #: What it is called in scenarios and tables. Default: the class's name with ``-`` between words.
    name: ClassVar[str] = ""
    #: Its colour in every chart, ``#rrggbb``. Default: one that follows from the name.
    colour: ClassVar[str] = ""
    _role: ClassVar[str] = ""

    def probe(self) -> dict[str, float]:
        """Inner values that are worth plotting; a name ends in its unit: ``{"target_bytes": ...}``."""
        return {}


class CongestionControl(Algorithm):
    """How much a sender may have in flight. One object a connection.

    TCP's mechanics (loss detection, recovery, timers) belong to the simulator's sender; what is decided here are
    `limits <suimon.Limits>`, which must be set in place.
    """

    _role = "congestion control"
    #: `on_delivery` is to be called, and the window is this algorithm's alone, also in recovery and after idle times.
    models_delivery: ClassVar[bool] = False
    #: Marks are told segment by segment, as DCTCP takes them (RFC 8257), in ``ack.marked_bytes``.
    marks_by_share: ClassVar[bool] = False

    def on_established(self, now_s: float, limits: Limits) -> None:
        """The connection is established; ``limits`` hold the stack's initial window."""

    def on_ack(self, ack: Ack, limits: Limits) -> None:
        """An acknowledgement arrived; nothing was sent in response yet."""
        raise NotImplementedError(f"{type(self).__name__}.on_ack")

    def on_congestion(self, event: Congestion, limits: Limits) -> None:
        """The network is congested: set ``limits.ssthresh_bytes``. The sender then brings ``cwnd`` there."""
        raise NotImplementedError(f"{type(self).__name__}.on_congestion")

    def on_spurious(self, now_s: float, limits: Limits) -> None:
        """The last congestion event was a mistake; ``cwnd`` and ``ssthresh`` are back already."""

    def on_delivery(self, delivery: Delivery) -> None:
        """What the acknowledgement that `on_ack` is about to get says of the rate of delivery.

        Before `on_established` it is the handshake's, which has delivered nothing: its round trip.
        """


class QueueDiscipline(Algorithm):
    """Which packets wait, in which order, and which are dropped or marked. One object a link.

    A packet that does not fit the link's buffer never comes here.
    """

    _role = "queue discipline"
    #: The link's buffer in packets, where it is counted in packets.
    buffer_packets: int | None = None
    #: The link's buffer in bytes, where it is counted in bytes.
    buffer_bytes: int | None = None
    #: How fast the link sends; of a recorded link the mean. ``None`` of an unlimited one.
    link_rate_bps: float | None = None

    def enqueue(self, packet: Packet, now_s: float) -> None:
        """Takes ``packet`` in, or drops it: ``packet.drop()``. What is kept has to be given by `dequeue` some time."""
        raise NotImplementedError(f"{type(self).__name__}.enqueue")

    def dequeue(self, now_s: float) -> Packet | None:
        """The packet to send next; on the way others may be dropped."""
        raise NotImplementedError(f"{type(self).__name__}.dequeue")


class PathScheduler(Algorithm):
    """Which of several connections carries which data. One object a stream."""

    _role = "path scheduler"

    def place(self, state: SendState, now_s: float) -> int | tuple[int, int] | tuple[int, str] | None:
        """What to hand to a connection now.

        The index of a path gives it the next data; ``(index, bytes)`` data so far behind the next; ``(index, "copy")``
        a copy of what is under way elsewhere. ``None`` waits until something changes. Asked again until ``None``, or
        until the answer cannot be done.
        """
        raise NotImplementedError(f"{type(self).__name__}.place")


_Class = TypeVar("_Class", bound=type[Algorithm])
_registered: dict[str, type[Algorithm]] = {}


def register(cls: _Class) -> _Class:
    """Lets scenarios name the algorithm ``cls``; one of the same name that was there before makes way.

    Raises:
        InputError: The registry has an algorithm of that name, or a parameter's default is no number.
    """
    if not (isinstance(cls, type) and issubclass(cls, Algorithm) and cls._role):
        accepted = "a subclass of CongestionControl, QueueDiscipline or PathScheduler"
        raise InputError(f"cls: {cls!r} is no algorithm; accepted: {accepted}")
    name = name_of(cls)
    if _registered.get(name) is not cls:
        summary = (inspect.getdoc(cls) or "").partition("\n")[0]
        _suimon.add_algorithm(cls._role, cls, name, summary, cls.colour or _colour(name), _parameters(cls))
        _registered[name] = cls
    return cls


def name_of(cls: type[Algorithm]) -> str:
    """What ``cls`` is called."""
    return cls.__dict__.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", "-", cls.__name__).lower()


def _parameters(cls: type[Algorithm]) -> list[tuple[str, object, str]]:
    if cls.__init__ is object.__init__:
        return []
    found = []
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty:
            raise InputError(f"{cls.__name__}.__init__: {parameter.name} has no default; accepted: one for each")
        found.append((parameter.name, parameter.default, ""))
    return found


#: Told apart by those who see few colours (Okabe, Ito 2008), black left out for what goes with every other.
_COLOURS = ["#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"]


def _colour(name: str) -> str:
    return _COLOURS[sum(name.encode()) % len(_COLOURS)]


def named(argument: str, value: object, role: type[Algorithm], accepted: str) -> str:
    """The name that ``value`` is, or that of the class that it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, type) and issubclass(value, role):
        return name_of(register(value))
    raise InputError(
        f"{argument}: {value!r} is no {role._role}; accepted: {accepted}, or a subclass of {role.__name__}"
    )
