"""The signatures of comparisons are those of the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import suimon as sm
from suimon import _suimon
from suimon.comparison import _READERS

#: The annotation of each kind of keyword.
ANNOTATIONS = {
    "senders": "Sender | Iterable[Sender]",
    "queues": "Queue | Iterable[Queue]",
    "schedulers": "Scheduler | Iterable[Scheduler]",
    "counts": "int | str",
    "time": "float | str",
    "bytes": "str",
    "profile": "str",
    "number": "int",
    "number or zero": "int",
    "flag": "bool",
    "text": "str",
}


@pytest.mark.parametrize(("function", "over"), [(sm.compare, "link"), (sm.compare_paths, "paths")])
def test_a_signature_has_each_field_of_the_request_with_its_default(function: Callable[..., Any], over: str) -> None:
    signature = inspect.signature(function)
    keywords = {name: (kind, default) for name, kind, default in _suimon.keywords(over == "paths")}
    assert sorted(signature.parameters) == sorted([over, *keywords, "progress"])
    documented = f"{sm.compare.__doc__}{function.__doc__}"
    for name, (kind, default) in keywords.items():
        parameter = signature.parameters[name]
        optional = "" if parameter.default is not None else " | None"
        assert parameter.annotation == ANNOTATIONS[kind] + optional, name
        read = _READERS[kind](name, parameter.default)
        found = read if isinstance(read, list) else [] if read is None or read is False else [str(read)]
        assert found == default, name
        assert f"        {name}: " in documented, name
