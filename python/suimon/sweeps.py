"""Sweeps: many runs, as Parquet, on the cores of this machine or on a Ray cluster."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from suimon import _check, _suimon, _toml
from suimon._kernel import KERNELS, swept
from suimon._ray import on_cluster
from suimon._store import Store, place
from suimon._work import Job, on_threads
from suimon.errors import InputError
from suimon.own import Algorithm as OwnAlgorithm
from suimon.own import CongestionControl, PathScheduler, QueueDiscipline, named
from suimon.result import Result
from suimon.scenario import Scenario, as_scenario

#: Short names of axes, and the key paths that they stand for.
_SHORT = {"sender": "flow.*.cc", "queue": "link.*.queue", "scheduler": "aggregate.*.scheduler"}
_ROLES: dict[str, type[OwnAlgorithm]] = {
    "cc": CongestionControl,
    "queue": QueueDiscipline,
    "scheduler": PathScheduler,
}


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    axes: Mapping[str, Iterable[object]] | None = None,
    *,
    seeds: int | None = None,
    series: bool = False,
    engine: Literal["threads", "ray"] = "threads",
    address: str | None = None,
    jobs: int | None = None,
    on: Literal["simulator", "lab", "live"] = "simulator",
) -> Sweep:
    """A sweep over every combination of the values of ``axes``; nothing runs yet.

    Args:
        scenario: What is varied: a `Scenario`, or the path of a file.
        axes: Key paths with the values that they take, beside the scenario's own matrix: ``"link.bottleneck.rate"``,
            ``"flow.*.cc"``; ``"link.rate"`` is that key of every link, and ``"sender"``, ``"queue"``, ``"scheduler"``
            are those of every flow, link, stream. Values may be classes where an algorithm belongs.
        seeds: Runs of each combination.
        series: Keep every event and sample too.
        engine: ``"threads"``: the cores of this machine. ``"ray"``: a Ray cluster, whose machines have this package and
            see the folder of the results under the same path.
        address: With Ray: the cluster, ``"auto"`` for the one that this machine is part of. Default: what Ray is
            connected to, or a cluster on this machine alone.
        jobs: With threads: runs at the same time. Default: one for each core.
        on: Where `Sweep.to_parquet` makes the runs. ``"lab"``: on an unmodified kernel in virtual time, each in a guest
            of its own. ``"live"``: on this machine's kernel in real time, as root. Both take the command ``suimon`` of
            this version.

    Raises:
        InputError: An axis or a value is not accepted; every combination is checked.
    """
    if engine not in ("threads", "ray"):
        raise InputError(f'engine: "{engine}" is none; accepted: threads, ray')
    if engine == "threads" and address is not None:
        raise InputError('address: goes with engine="ray"')
    if engine == "ray" and jobs is not None:
        raise InputError('jobs: goes with engine="threads"; Ray counts the cores of its cluster')
    if on != "simulator" and on not in KERNELS:
        raise InputError(f"on: {on!r} is no place to run; accepted: simulator, {', '.join(KERNELS)}")
    if on != "simulator" and engine == "ray":
        raise InputError('engine: "ray" goes with on="simulator"')
    return Sweep(
        as_scenario("scenario", scenario),
        axes or {},
        None if seeds is None else _check.count("seeds", seeds),
        series,
        engine,
        _check.optional_text("address", address, 'the address of a Ray cluster, "auto"'),
        None if jobs is None else _check.count("jobs", jobs),
        on,
    )


class Sweep:
    """Runs to be made; `sweep` makes one."""

    def __init__(
        self,
        scenario: Scenario,
        axes: Mapping[str, Iterable[object]],
        seeds: int | None,
        series: bool,
        engine: str,
        address: str | None,
        jobs: int | None,
        on: str,
    ) -> None:
        self._engine, self._address, self._jobs, self._on = engine, address, jobs, on
        self._series = series
        self._classes: list[type[OwnAlgorithm]] = []
        self._scenario = scenario._with_text(self._text(scenario.toml, axes, seeds))
        if on != "simulator" and self._classes:
            raise InputError(f"axes: {self._classes[0].__name__} is a class in Python; accepted with on={on!r}: names")
        self._settings = [f"{key}={value}" for key, value in scenario._settings]
        self._sweep = _suimon.Sweep(self._scenario._document, self._settings, series)

    def _text(self, text: str, axes: Mapping[str, Iterable[object]], seeds: int | None) -> str:
        """The scenario's text with ``axes`` behind it."""
        content = tomllib.loads(text)
        if seeds is not None:
            if "seeds" in content:
                raise InputError(f"seeds: the scenario says {content['seeds']} itself; accepted: only one of the two")
            text = f"seeds = {seeds}\n{text}"
        for key, values in axes.items():
            path = _path(_check.text("axes", key, "key paths"), content)
            name = key if key in _SHORT else path.rpartition(".")[2]
            listed = _check.items(f"axes: {key}", values, "values")
            shown = [_toml.value(key, self._value(key, path, each)) for each in listed]
            matrix = f"name = {_toml.value('name', name)}\nset = {_toml.value('set', path)}\n"
            text += f"\n[[matrix]]\n{matrix}values = [{', '.join(shown)}]\n"
        return text

    def _value(self, key: str, path: str, value: object) -> object:
        role = _ROLES.get(path.rpartition(".")[2])
        if isinstance(value, type) and role is not None:
            name = named(f"axes: {key}", value, role, "a name")
            self._classes.append(value)
            return name
        return value

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self._sweep.runs

    @property
    def parts(self) -> int:
        """How many parts they fall into; a part is whole or not there."""
        return self._sweep.parts

    @property
    def toml(self) -> str:
        """The scenario file that asks for the same."""
        return self._scenario.toml

    def collect(self, *, progress: bool = True) -> Result:
        """Runs everything on this machine and keeps it in memory, samples included.

        Raises:
            InputError: There are more than 100 000 runs, or the sweep runs on a kernel.
        """
        if self._on != "simulator":
            raise InputError(f"collect: keeps what the simulator gives; accepted with on={self._on!r}: to_parquet")
        return self._scenario.run(progress=progress)

    def to_parquet(self, folder: str | os.PathLike[str], *, restart: bool = False, progress: bool = True) -> Parts:
        """Makes what is not yet in ``folder``, whatever stopped the sweep before: this process, or a worker.

        Args:
            folder: Where parts go, each with a Parquet file a table; made if missing. A path, or with pyarrow the
                address of a folder in an object store, ``"s3://bucket/out"``, also with ``gs``, ``abfs``, ``hdfs``.
            restart: Discard what a sweep has left there.
            progress: Show a bar on standard error after two seconds, where that is a terminal.

        Raises:
            InputError: Another sweep is in the folder, or at work there.
            FileError: A part could not be written.
        """
        where = place(os.fspath(folder))
        if self._on != "simulator":
            if isinstance(where, Store):
                raise InputError(f"folder: with on={self._on!r} a folder of this machine is accepted")
            options = self._options(where, restart)
            swept(self._scenario.toml, self._scenario._directory, self._on, options)
        elif isinstance(where, Store):
            where.open(self._sweep, restart)
            missing = where.missing(range(self.parts))
            if self._engine == "threads":
                on_threads(self._job(where.uri), missing, self._jobs, progress)
        else:
            # The folder is locked as long as this is held.
            opened = self._sweep.open(where, restart)
            missing = opened.missing(self._sweep)
            if self._engine == "threads":
                self._sweep.make(opened, self._jobs, progress)
        if self._engine == "ray":
            on_cluster(self._job(where if isinstance(where, str) else where.uri), missing, self._address, progress)
        return Parts(where, self.runs)

    def _options(self, folder: str, restart: bool) -> list[str]:
        """Of the command `suimon sweep`."""
        options = ["--out", str(Path(folder).absolute())]
        for setting in self._settings:
            options += ["--set", setting]
        options += ["--jobs", str(self._jobs)] if self._jobs else []
        options += ["--series"] if self._series else []
        return options + (["--restart"] if restart else [])

    def _job(self, folder: str) -> Job:
        return Job(
            text=self._scenario.toml,
            source=self._scenario._source or "scenario",
            directory=self._scenario._directory,
            settings=self._scenario._settings,
            manifest=self._sweep.manifest,
            folder=folder,
            classes=tuple(self._classes),
        )

    def __repr__(self) -> str:
        return f"<suimon.Sweep {self._sweep.name} of {self.runs} runs in {self.parts} parts>"


def _path(key: str, content: Mapping[str, Any]) -> str:
    """The key path that ``key`` stands for."""
    if key in _SHORT:
        return _SHORT[key]
    section, _, rest = key.partition(".")
    named_so = [table.get("name") for table in content.get(section, []) if isinstance(table, dict)]
    if section in ("link", "flow", "aggregate") and rest and "." not in rest and rest not in named_so:
        return f"{section}.*.{rest}"
    return key


class Parts:
    """A finished sweep in a folder or a store."""

    def __init__(self, where: str | Store, runs: int) -> None:
        self._store = where if isinstance(where, Store) else None
        #: Where it is: a path, or an address.
        self.folder = where if isinstance(where, str) else where.address
        #: How many runs it has.
        self.runs = runs

    def pattern(self, table: str = "runs") -> str:
        """The files of ``table``, as polars and DuckDB take them: ``out/part-*/runs.parquet``."""
        return f"{self.folder}/part-*/{table}.parquet"

    def files(self, table: str = "runs") -> list[str]:
        """The files of ``table``, in the order of the runs; in a store each by bucket and key."""
        if self._store is not None:
            return self._store.files(table)
        return sorted(str(path) for path in Path(self.folder).glob(f"part-*/{table}.parquet"))

    def to_polars(self, table: str = "runs") -> Any:
        """``table`` as one polars data frame; takes polars."""
        import polars

        opened = self._store.read if self._store is not None else str
        return polars.concat([polars.read_parquet(opened(file)) for file in self.files(table)], how="diagonal")

    def __repr__(self) -> str:
        return f"<suimon.Parts {self.folder}: {self.runs} runs>"
