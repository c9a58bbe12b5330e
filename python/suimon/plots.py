"""Pictures of results in one style; they take matplotlib, which ``pip install suimon[plot]`` brings.

An algorithm has the colour that the command's page gives it, and a dash and a marker of its own, so that pictures read
without colours too. Every method returns a matplotlib figure: ``figure.savefig("backlog.svg")`` keeps it sharp at any
size, and the same result gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

from suimon import _suimon
from suimon.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suimon.result import Result

#: What all pictures share.
STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 3.6),
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    # Text stays text, and names of elements do not change from call to call.
    "svg.fonttype": "none",
    "svg.hashsalt": "suimon",
    "pdf.fonttype": 42,
}

_DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2)), (0, (2, 2)), (0, (9, 1))]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d"]

#: Endings of columns: the unit that is shown, and how many of the column's are one of it.
_UNITS = {
    "_bps": ("Mbit/s", 1e6),
    "_bytes": ("kB", 1e3),
    "_ms": ("ms", 1.0),
    "_s": ("s", 1.0),
    "_packets": ("packets", 1.0),
    "_segments": ("segments", 1.0),
}


class Plots:
    """Pictures of one result: ``result.plot.backlog()``."""

    def __init__(self, result: Result) -> None:
        self._result = result
        _matplotlib()

    def backlog(self) -> Figure:
        """What waits before each reported link, over time."""
        return self.series("backlog_packets", "Backlog")

    def delay(self) -> Figure:
        """How long packets wait before each reported link, over time."""
        return self.series("delay_ms", "Queueing delay")

    def goodput(self) -> Figure:
        """What each flow delivers, over time."""
        return self.series("goodput_bps", "Goodput")

    def cwnd(self) -> Figure:
        """Each flow's congestion window, over time."""
        return self.series("cwnd_bytes", "Congestion window")

    def series(self, column: str, label: str | None = None) -> Figure:
        """A sampled quantity over time: a column of ``flow_series`` or ``queue_series``.

        Raises:
            InputError: Neither has it; the message lists what there is.
        """
        table, subject = self._sampled(column)
        unit, factor = _unit(column)
        with _figure() as (figure, axes):
            for (run, name), rows in _groups(table, "run", subject):
                look = self._look(run, name if subject == "flow" else None)
                values = [row if row is not None else float("nan") for row in _picked(table, column, rows)]
                axes.plot(
                    _picked(table, "time_s", rows),
                    [value / factor for value in values],
                    color=look.colour,
                    linestyle=look.dash,
                    label=look.name,
                )
            _labels(axes, "Time [s]", _titled(label or column, unit))
        return figure

    def convergence(self, window_s: float = 1.0) -> Figure:
        """Each flow's share of what all flows of its run deliver, in windows of ``window_s``."""
        table = self._result.flow_series
        with _figure() as (figure, axes):
            totals: dict[tuple[int, int], float] = {}
            flows: dict[tuple[int, str], dict[int, float]] = {}
            for run, flow, time, rate in zip(
                *(table[name].to_list() for name in ("run", "flow", "time_s", "goodput_bps")), strict=True
            ):
                nth = int(time / window_s)
                totals[run, nth] = totals.get((run, nth), 0.0) + (rate or 0.0)
                share = flows.setdefault((run, flow), {})
                share[nth] = share.get(nth, 0.0) + (rate or 0.0)
            for (run, flow), sums in flows.items():
                look = self._look(run, flow)
                shares = [sums[nth] / totals[run, nth] if totals[run, nth] else float("nan") for nth in sums]
                times = [nth * window_s for nth in sums]
                axes.step(times, shares, where="post", color=look.colour, linestyle=look.dash, label=look.name)
            axes.set_ylim(-0.02, 1.02)
            _labels(axes, "Time [s]", "Share of goodput")
        return figure

    def tradeoff(self, delay: str = "delay_p95_ms") -> Figure:
        """Throughput against delay: a point a run, and an ellipse where an algorithm has at least three.

        The ellipse is one standard deviation of a normal distribution fitted to them. Delay falls to the right, so
        that better is up and right, as the field draws it.
        """
        runs = self._result.runs
        unit, factor = _unit(delay)
        by_name: dict[str, list[tuple[float, float, _Look]]] = {}
        columns = (runs[name].to_list() for name in ("run", delay, "goodput_bps"))
        for run, wait, rate in zip(*columns, strict=True):
            if wait is not None:
                look = self._look(run)
                by_name.setdefault(look.name, []).append((wait / factor, rate / 1e6, look))
        with _figure() as (figure, axes):
            for name, points in by_name.items():
                look = points[0][2]
                x, y = [point[0] for point in points], [point[1] for point in points]
                axes.scatter(x, y, s=14, color=look.colour, marker=look.marker, alpha=0.5, linewidths=0)
                if len(points) > 2:
                    _ellipse(axes, x, y, look)
                middle = (sum(x) / len(x), sum(y) / len(y))
                axes.plot(*middle, look.marker, color=look.colour, markersize=7, label=name)
            axes.invert_xaxis()
            _labels(axes, _titled(delay.removesuffix("_ms").replace("_", " "), unit), "Goodput [Mbit/s]")
        return figure

    def cdf(self, column: str = "delay_p95_ms", table: str = "runs") -> Figure:
        """How a column is distributed over runs, flows or samples: one line an algorithm.

        Args:
            column: Of ``table``, or of the samples: ``"delay_ms"`` with ``table="queue_series"``.
            table: Name of a table of the result.
        """
        frame = self._result._findings.table(table)
        unit, factor = _unit(column)
        by_name: dict[str, tuple[_Look, list[float]]] = {}
        flows = frame["flow"].to_list() if "flow" in frame.columns else [None] * len(frame)
        for run, flow, value in zip(frame["run"].to_list(), flows, frame[column].to_list(), strict=True):
            if value is not None:
                look = self._look(run, flow)
                by_name.setdefault(look.name, (look, []))[1].append(value / factor)
        with _figure() as (figure, axes):
            for name, (look, values) in by_name.items():
                axes.ecdf(values, color=look.colour, linestyle=look.dash, label=name)
            axes.set_ylim(0, 1.02)
            _labels(axes, _titled(column, unit), "Share")
        return figure

    def fairness(self, x: str, y: str, column: str = "jain_index") -> Figure:
        """A heat map over two axes: Jain's index of a run's flows, or another column of ``runs``; seeds are averaged.

        Raises:
            InputError: There is no such axis; the message lists the columns.
        """
        runs = self._result.runs
        for argument, name in (("x", x), ("y", y), ("column", column)):
            if name not in runs.columns:
                accepted = ", ".join(runs.columns)
                raise InputError(f"{argument}: no column of runs is called {name!r}; accepted: {accepted}")
        cells: dict[tuple[str, str], list[float]] = {}
        for across, up, value in zip(*(runs[name].to_list() for name in (x, y, column)), strict=True):
            if value is not None:
                cells.setdefault((str(across), str(up)), []).append(value)
        across = list(dict.fromkeys(str(value) for value in runs[x].to_list()))
        upward = list(dict.fromkeys(str(value) for value in runs[y].to_list()))
        means = {cell: sum(values) / len(values) for cell, values in cells.items()}
        grid = [[means.get((a, b), float("nan")) for a in across] for b in upward]
        unit, factor = _unit(column)
        with _figure() as (figure, axes):
            low, high = (0.5, 1.0) if column == "jain_index" else (None, None)
            # Even steps of lightness, told apart without colours.
            scaled = [[value / factor for value in row] for row in grid]
            image = axes.imshow(scaled, cmap="cividis", aspect="auto", origin="lower", vmin=low, vmax=high)
            axes.set_xticks(range(len(across)), across)
            axes.set_yticks(range(len(upward)), upward)
            axes.grid(visible=False)
            title = "Jain's index" if column == "jain_index" else column
            figure.colorbar(image, ax=axes, label=_titled(title, unit))
            _labels(axes, x, y, legend=False)
        return figure

    def _sampled(self, column: str) -> tuple[_suimon.Table, str]:
        known: list[str] = []
        for name, subject in (("queue_series", "link"), ("flow_series", "flow"), ("aggregate_series", "aggregate")):
            table = self._result._findings.table(name)
            if column in table.columns:
                return table, subject
            known += table.columns[table.columns.index("time_s") + 1 :]
        raise InputError(f"column: nothing sampled is called {column!r}; accepted: {', '.join(dict.fromkeys(known))}")

    def _look(self, run: int, flow: str | None = None) -> _Look:
        """How what ``run`` is about is drawn, or one of its ``flow``s."""
        if not hasattr(self, "_looks"):
            self._looks = _looks(self._result)
        return self._looks.get((run, flow)) or self._looks[run, None]


class _Look:
    """How an algorithm is drawn, the same in every picture of a result: ``place`` is its place among the result's."""

    def __init__(self, name: str, place: int, colour: str) -> None:
        self.name, self.colour = name, colour
        self.dash, self.marker = _DASHES[place % len(_DASHES)], _MARKERS[place % len(_MARKERS)]


def _looks(result: Result) -> dict[tuple[int, str | None], _Look]:
    """The look of every run, and of every flow where a run has several algorithms."""
    flows = result.flows
    columns = [flows[name].to_list() for name in ("run", "flow", "algorithm", "colour")]
    by_run: dict[int, list[tuple[str, str, str]]] = {}
    for run, flow, algorithm, colour in zip(*columns, strict=True):
        by_run.setdefault(run, []).append((flow, algorithm, colour))
    columns_of_runs = result.runs.columns
    # The keys of a run: its number, the scenario, a column for each axis, the seed.
    axes = [name for name in columns_of_runs[2 : columns_of_runs.index("seed")] if name != "axis_seed"]
    found: dict[tuple[int, str | None], _Look] = {}
    places: dict[str, int] = {}

    def place(algorithm: str) -> int:
        return places.setdefault(algorithm.partition(":")[0], len(places))

    # Beyond the algorithm, what sets runs apart is their labels, seeds left out.
    for row in result.runs.to_dicts():
        run = row["run"]
        of_run = by_run.get(run, [])
        colour = next((colour for _, algorithm, colour in of_run if algorithm == row["algorithm"]), "#555555")
        labels = [str(row[axis]) for axis in axes if row[axis] is not None]
        found[run, None] = _Look(", ".join(labels) or row["algorithm"], place(row["algorithm"]), colour)
        if len(of_run) > 1:
            for flow, algorithm, own in of_run:
                name = ", ".join([*labels, flow])
                found[run, flow] = _Look(name, place(algorithm), own)
    return found


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("pictures take matplotlib; accepted: pip install 'suimon[plot]'") from None
    return matplotlib


@contextmanager
def _figure() -> Iterator[tuple[Figure, Axes]]:
    """A figure with one set of axes, in the common style, that no window keeps."""
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that is saved in the common style too, and without the time."""

        def __init__(self) -> None:
            super().__init__()
            self._places: dict[Any, Any] = {}

        def savefig(self, fname: Any, **keywords: Any) -> None:
            kind = keywords.get("format", str(fname).rpartition(".")[2])
            date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
            defaults: dict[str, Any] = {"metadata": {date: None}} if date else {"dpi": 200}
            # Or the layout would begin where it ended the last time, and round otherwise.
            for axes in self.axes:
                axes.set_position(self._places.setdefault(axes, axes.get_position(original=True).frozen()))
                axes.set_in_layout(True)
            with matplotlib.rc_context(STYLE):
                super().savefig(fname, **{**defaults, **keywords})

        def _repr_svg_(self) -> str:
            """The picture as a notebook shows it."""
            text = StringIO()
            self.savefig(text, format="svg")
            return text.getvalue()

    with matplotlib.rc_context(STYLE):
        figure = Picture()
        yield figure, figure.add_subplot()


def _labels(axes: Axes, x: str, y: str, *, legend: bool = True) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if legend:
        # Runs that differ only in their seed share a name.
        named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        if named:
            axes.legend(named.values(), named.keys(), loc="best", fontsize=8)


def _ellipse(axes: Axes, x: Sequence[float], y: Sequence[float], look: _Look) -> None:
    """One standard deviation of a normal distribution fitted to the points."""
    import numpy
    from matplotlib.patches import Ellipse

    values, vectors = numpy.linalg.eigh(numpy.cov(x, y))
    width, height = 2 * numpy.sqrt(numpy.maximum(values, 0.0))
    angle = float(numpy.degrees(numpy.arctan2(vectors[1, 0], vectors[0, 0])))
    middle = (float(numpy.mean(x)), float(numpy.mean(y)))
    axes.add_patch(Ellipse(middle, width, height, angle=angle, facecolor=look.colour, alpha=0.2, linewidth=0))


def _unit(column: str) -> tuple[str, float]:
    """The unit in which a column is shown, and how many of its own are one of that."""
    return next((unit for ending, unit in _UNITS.items() if column.endswith(ending)), ("", 1.0))


def _titled(label: str, unit: str) -> str:
    for ending in _UNITS:
        label = label.removesuffix(ending)
    label = label.replace("_", " ")
    return f"{label[:1].upper()}{label[1:]}" + (f" [{unit}]" if unit else "")


def _groups(table: _suimon.Table, *keys: str) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
    """The rows of ``table`` by the values of ``keys``, in their order."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(zip(*(table[key].to_list() for key in keys), strict=True)):
        found.setdefault(values, []).append(row)
    yield from found.items()


def _picked(table: _suimon.Table, column: str, rows: Sequence[int]) -> list[Any]:
    values = table[column].to_list()
    return [values[row] for row in rows]
