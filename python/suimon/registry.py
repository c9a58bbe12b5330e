"""What there is to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from suimon import _suimon


@dataclass(frozen=True)
class Parameter:
    """A settable quantity of an algorithm: ``"vegas:alpha=2"``."""

    name: str
    #: What holds where nothing is set, with its unit.
    default: str
    #: Which values are accepted, in words.
    accepted: str
    help: str


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the registry."""

    name: str
    #: Congestion control, receive window, queue discipline, path scheduler, round-trip time estimator or shaper.
    role: str
    summary: str
    #: The paper or RFC that defines it.
    source: str
    #: Its colour in every chart, ``#rrggbb``.
    colour: str
    parameters: tuple[Parameter, ...]


def algorithms(role: str | None = None) -> list[Algorithm]:
    """Every algorithm there is, or those of one ``role`` such as ``"queue discipline"``."""
    found = [
        Algorithm(name, of, summary, source, colour, tuple(Parameter(*each) for each in parameters))
        for name, of, summary, source, colour, parameters in _suimon.algorithms()
    ]
    if role is None:
        return found
    chosen = [algorithm for algorithm in found if algorithm.role == role]
    if not chosen:
        from suimon.errors import InputError

        accepted = ", ".join(dict.fromkeys(algorithm.role for algorithm in found))
        raise InputError(f"role: no algorithm is a {role!r}; accepted: {accepted}")
    return chosen


def profiles() -> list[str]:
    """The habits of TCP stacks that senders and receivers can have."""
    return _suimon.profiles()
