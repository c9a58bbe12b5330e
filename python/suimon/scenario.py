"""Experiments: links, flows, what varies. The same keys as in a scenario file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from suimon import _check, _suimon, _toml
from suimon.comparison import Queue, Sender
from suimon.errors import InputError
from suimon.links import Link
from suimon.own import CongestionControl, QueueDiscipline, named
from suimon.result import Result


class Scenario:
    """An experiment: a scenario file as an object.

    Args:
        **keys: Keys of a scenario file: ``duration="10s"``, ``link=[{"name": ..., "rate": ...}]``, ``flow=[{...}]``.
            `default_scenario` prints them all.

    Raises:
        InputError: A key cannot be written as TOML. Whether values are accepted, `run` tells.
    """

    def __init__(self, **keys: object) -> None:
        self._document = _suimon.Document.parse(_toml.document(keys), "scenario", str(Path.cwd()))
        self._source: str | None = None
        self._directory = str(Path.cwd())
        self._settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Scenario:
        """The scenario file at ``path``; traces that it names are relative to its folder.

        Raises:
            InputError: The file cannot be read or is not TOML.
        """
        source = os.fspath(path)
        return cls._of(_suimon.Document.read(source), source, str(Path(source).absolute().parent))

    @classmethod
    def parse(cls, toml: str) -> Scenario:
        """The scenario that the text of a file describes.

        Raises:
            InputError: The text is not TOML.
        """
        text = _check.text("toml", toml, "a scenario file's text")
        return cls._of(_suimon.Document.parse(text, "scenario", str(Path.cwd())), None, str(Path.cwd()))

    @classmethod
    def over(
        cls,
        link: Link | str,
        senders: Sender | Iterable[Sender] = "cubic",
        *,
        queue: Queue = "droptail",
        seconds: float | str = 60.0,
        **keys: object,
    ) -> Scenario:
        """One link, called ``bottleneck``, from host ``sender`` to host ``receiver``, that all ``senders`` share.

        Args:
            link: The link; the way back has no rate limit.
            senders: What the flows run, one each. Each flow is called like its sender, alone ``main``.
            queue: The queue discipline in front of the link.
            seconds: When a run ends at the latest.
            **keys: Further keys of a scenario file, such as ``seeds=10``.
        """
        if not isinstance(link, Link):
            link = Link(_check.text("link", link, "a Link, or a line"))
        listed = _check.items("senders", senders, "names")
        names = [named("senders", each, CongestionControl, "names") for each in listed]
        flows = []
        for nth, name in enumerate(names):
            same = names[:nth].count(name)
            plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
            called = "main" if len(names) == 1 else plain + (f"-{same + 1}" if same else "")
            flows.append({"name": called, "from": "sender", "to": "receiver", "cc": name})
        tables = link._tables()
        bottleneck = {
            "name": "bottleneck",
            "between": ["sender", "receiver"],
            **tables.pop("link"),
            "queue": named("queue", queue, QueueDiscipline, "a name"),
        }
        duration = _check.seconds("seconds", seconds)
        return cls(**{"duration": duration, **keys, **tables, "link": [bottleneck], "flow": flows})

    @classmethod
    def _of(
        cls,
        document: _suimon.Document,
        source: str | None,
        directory: str,
        settings: tuple[tuple[str, str], ...] = (),
    ) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._document, scenario._source, scenario._settings = document, source, settings
        scenario._directory = directory
        return scenario

    def _with_text(self, text: str) -> Scenario:
        """The same with another text and the same settings."""
        document = _suimon.Document.parse(text, self._source or "scenario", self._directory)
        for key, shown in self._settings:
            document = document.with_value(key, shown)
        return self._of(document, self._source, self._directory, self._settings)

    @property
    def toml(self) -> str:
        """The scenario file, without what `with_` changed."""
        return self._document.text

    def with_(self, settings: Mapping[str, object]) -> Scenario:
        """The same with other values: ``{"duration": "5s", "link.bottleneck.rate": "2Mbit", "flow.*.cc": "reno"}``.

        Raises:
            InputError: There is no such key.
        """
        document, done = self._document, list(self._settings)
        for key, content in settings.items():
            shown = content if isinstance(content, str) else _toml.value(key, content)
            document = document.with_value(_check.text("settings", key, "keys"), shown)
            done.append((key, shown))
        return self._of(document, self._source, self._directory, tuple(done))

    def count(self) -> int:
        """How many runs it asks for; every value is checked.

        Raises:
            InputError: A value is not accepted; the message has key and line.
        """
        return self._document.count()

    def run(self, *, progress: bool = True) -> Result:
        """Runs it, its matrix and its seeds, on all cores.

        Raises:
            InputError: A value is not accepted; the message has key and line.
        """
        words = ["suimon", "run", shlex.quote(self._source or "scenario.toml")]
        words += [f"--set {shlex.quote(f'{key}={shown}')}" for key, shown in self._settings]
        return Result(self._document.run(" ".join(words), progress))

    def __repr__(self) -> str:
        return f"<suimon.Scenario {self._source or 'of objects'}>"


def as_scenario(argument: str, value: Scenario | str | os.PathLike[str]) -> Scenario:
    """The scenario that ``value`` is, or that the file at ``value`` holds."""
    if isinstance(value, Scenario):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Scenario.read(value)
    raise InputError(f"{argument}: {value!r} is no scenario; accepted: a Scenario, or the path of a file")


def default_scenario() -> str:
    """A scenario file with every key, its default and its meaning."""
    return _suimon.default_scenario()
