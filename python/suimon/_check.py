"""Arguments that are checked before the native half sees them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import SupportsIndex

from suimon.errors import InputError


def text(argument: str, value: object, accepted: str) -> str:
    """The text that ``value`` is."""
    if isinstance(value, str):
        return value
    raise InputError(f"{argument}: {value!r} is no text; accepted: {accepted}")


def optional_text(argument: str, value: object, accepted: str) -> str | None:
    """The text that ``value`` is, where it is not left out."""
    return None if value is None else text(argument, value, accepted)


def count(argument: str, value: SupportsIndex, least: int = 1) -> int:
    """The whole number that ``value`` is, at least ``least`` and of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{argument}: {value!r} is no whole number; accepted: {least} or more") from None
    if isinstance(value, bool) or not least <= number < 2**63:
        raise InputError(f"{argument}: {value!r} is out of range; accepted: {least} or more")
    return number


def seconds(argument: str, value: float | str) -> str:
    """A time as text with a unit, of a number of seconds or of such a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f'{argument}: {value!r} is no time; accepted: seconds, or text such as "500ms"')
    if not math.isfinite(value * 1e9) or value < 0:
        raise InputError(f"{argument}: {value!r} is out of range; accepted: seconds from zero on")
    nanoseconds = round(value * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"


def items(argument: str, value: object, accepted: str) -> list[object]:
    """The items that ``value`` lists; a single text or class is a list of one."""
    if isinstance(value, str) or not isinstance(value, Iterable) or isinstance(value, type):
        return [value]
    found = list(value)
    if not found:
        raise InputError(f"{argument}: is empty; accepted: {accepted}")
    return found
