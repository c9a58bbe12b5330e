"""The signatures of comparisons are those of the request.

``SUIMON_WRITE_SIGNATURES=1`` writes the keywords that the request has and a signature lacks, with their meaning.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
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
    told = _suimon.keywords(over == "paths")
    if "SUIMON_WRITE_SIGNATURES" in os.environ:
        write([each for each in told if each[0] not in signature.parameters], function)
        pytest.skip("written")
    keywords = {name: (kind, default) for name, kind, default, _ in told}
    others = [over, "progress"] if over == "paths" else [over, "on", "progress"]
    assert sorted(signature.parameters) == sorted([*keywords, *others])
    documented = f"{sm.compare.__doc__}{function.__doc__}"
    for name, (kind, default) in keywords.items():
        parameter = signature.parameters[name]
        optional = "" if parameter.default is not None else " | None"
        assert parameter.annotation == ANNOTATIONS[kind] + optional, name
        read = _READERS[kind](name, parameter.default)
        found = read if isinstance(read, list) else [] if read is None or read is False else [str(read)]
        assert found == default, name
        assert f"        {name}: " in documented, name


def write(missing: list[tuple[str, str, list[str], str]], function: Callable[..., Any]) -> None:
    """Adds keywords to the signature and the docstring of a function, before ``progress``."""
    path = Path(inspect.getfile(function))
    before, begin, rest = path.read_text().partition(f"def {function.__name__}(")
    for name, kind, default, meaning in missing:
        annotation, value = ANNOTATIONS[kind], "None"
        if kind == "flag":
            value = "False"
        elif default:
            value = default[0] if kind.startswith("number") else f'"{default[0]}"'
        else:
            annotation += " | None"
        parameter = f"    {name}: {annotation} = {value},\n"
        signature, last, body = rest.partition("    progress: bool")
        rest = signature + parameter + last + body
        documented, last, body = rest.partition("        progress: ")
        rest = documented + f"        {name}: {meaning}.\n" + last + body if last else rest
    path.write_text(before + begin + rest)


def test_a_keyword_that_is_missing_is_written_where_it_belongs(tmp_path: Path) -> None:
    source = tmp_path / "written.py"
    docstring = '    """Does.\n\n    Args:\n        progress: Show.\n    """\n'
    source.write_text(f"def sample(\n    link: str,\n    progress: bool = True,\n) -> None:\n{docstring}")
    namespace: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), namespace)
    write([("pause", "time", [], "A pause"), ("repeats", "number", ["1"], "How often")], namespace["sample"])
    written = source.read_text()
    assert "    link: str,\n    pause: float | str | None = None,\n    repeats: int = 1,\n    progress: bool" in written
    assert "        pause: A pause.\n        repeats: How often.\n        progress: Show." in written
