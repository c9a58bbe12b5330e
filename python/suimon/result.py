"""What a run yields: tables, a page, plots."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING

from suimon import _suimon

if TYPE_CHECKING:
    from suimon.plots import Plots


class Result:
    """The results of one or more runs.

    Each table has a row per run and flow, link, event or sample; names of columns end in their unit. A table is a data
    frame's worth of Arrow columns: ``polars.DataFrame(result.flows)``, ``pyarrow.table(result.flows)`` and
    ``pandas.DataFrame.from_arrow(result.flows)`` take it without a copy.

    ``print(result)`` shows what the command prints.
    """

    def __init__(self, findings: _suimon.Findings) -> None:
        self._findings = findings

    @property
    def runs(self) -> _suimon.Table:
        """One row a run: totals, the slowest link, the grade of latency under load."""
        return self._findings.table("runs")

    @property
    def flows(self) -> _suimon.Table:
        """One row a flow: goodput, losses, round-trip times."""
        return self._findings.table("flows")

    @property
    def aggregates(self) -> _suimon.Table:
        """One row a stream that several flows carry."""
        return self._findings.table("aggregates")

    @property
    def queues(self) -> _suimon.Table:
        """One row a reported link: use, backlog, delay, drops."""
        return self._findings.table("queues")

    @property
    def windows(self) -> _suimon.Table:
        """One row a window of the scenario and reported link."""
        return self._findings.table("windows")

    @property
    def events(self) -> _suimon.Table:
        """One row an event: recoveries, timeouts, marks."""
        return self._findings.table("events")

    @property
    def flow_series(self) -> _suimon.Table:
        """One row a sample of a flow."""
        return self._findings.table("flow_series")

    @property
    def aggregate_series(self) -> _suimon.Table:
        """One row a sample of a stream that several flows carry."""
        return self._findings.table("aggregate_series")

    @property
    def queue_series(self) -> _suimon.Table:
        """One row a sample of a reported link."""
        return self._findings.table("queue_series")

    @property
    def advice(self) -> _suimon.Table:
        """One row a change that was tried and helps, best first: what it does for the call, and how it is made.

        Only a comparison with ``advise=True``, or over a link with a rate each way, tries changes; else there are no
        rows. ``how`` has a line for each command or entry of a menu.
        """
        return self._findings.advice()

    @property
    def title(self) -> str:
        """What was asked."""
        return self._findings.title

    @property
    def command(self) -> str:
        """The command that gives the same, where there is one; else the call."""
        return self._findings.command

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader should know."""
        return self._findings.notes

    @property
    def plot(self) -> Plots:
        """Pictures; they take matplotlib, which ``pip install suimon[plot]`` brings."""
        from suimon.plots import Plots

        return Plots(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the command's page, one self-contained HTML file, to ``path``.

        Raises:
            FileError: The file cannot be written.
        """
        self._findings.report(os.fspath(path))

    def write(self, folder: str | os.PathLike[str]) -> str:
        """Writes page, CSV and Parquet into ``folder`` as the command does; gives the page's path.

        Raises:
            FileError: A file cannot be written.
        """
        return os.fspath(self._findings.write(os.fspath(folder)))

    def to_json(self, *, series: bool = False) -> str:
        """The command's JSON document; ``series`` for every sample too."""
        return self._findings.json(series)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._findings)

    def __repr__(self) -> str:
        return f"<suimon.{type(self).__name__} of {len(self)} runs: {self.title}>"

    def __str__(self) -> str:
        return self._findings.text(100)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._findings.text(120))}</pre>"


class PaperResult(Result):
    """A paper's evaluation re-run, and what became of its claims."""

    @property
    def verdicts(self) -> _suimon.Table:
        """One row a number: the claim, the paper's number, the tolerance, what was measured, the verdict."""
        return self._findings.verdicts()

    @property
    def broken(self) -> int:
        """How many claims that once held do not hold any more."""
        return self._findings.broken
