"""A sweep's parts in batches, for whoever makes them: threads, or workers of Ray. They write them too."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event

from suimon import _suimon
from suimon._store import Store, place
from suimon.own import Algorithm, register


@dataclass(frozen=True)
class Job:
    """What a worker has to know of a sweep."""

    text: str
    source: str
    directory: str
    settings: tuple[tuple[str, str], ...]
    manifest: str
    folder: str
    classes: tuple[type[Algorithm], ...]

    def sweep(self) -> _suimon.Sweep:
        """The sweep, which the driver has checked."""
        for cls in self.classes:
            register(cls)
        document = _suimon.Document.parse(self.text, self.source, self.directory)
        for key, value in self.settings:
            document = document.with_value(key, value)
        return _suimon.Sweep.checked(document, self.manifest)


def work(job: Job, parts: list[int], stop: Event | None = None) -> int:
    """Makes ``parts``, as far as they are not there; gives how many."""
    where, writer = place(job.folder), f"{platform.node()}-{os.getpid()}"
    if isinstance(where, Store):
        return where.make(job.sweep(), parts, writer, stop or Event())
    return job.sweep().make_parts(where, parts, writer)


def batches(missing: list[int], cores: int) -> list[list[int]]:
    """``missing`` in batches of falling size, so that tasks are few and yet all cores end together."""
    found, begin = [], 0
    while begin < len(missing):
        size = math.ceil((len(missing) - begin) / (4 * cores))
        found.append(missing[begin : begin + size])
        begin += size
    return found


def on_threads(job: Job, missing: list[int], jobs: int | None, progress: bool) -> None:
    """Makes the ``missing`` parts of ``job``, whose folder is in a store, on threads of this process."""
    cores, stop = jobs or os.cpu_count() or 1, Event()
    counter = Counter(len(missing), progress)
    with ThreadPoolExecutor(cores) as pool:
        pending = {pool.submit(work, job, batch, stop): len(batch) for batch in batches(missing, cores)}
        try:
            for done in as_completed(pending):
                done.result()
                counter.add(pending[done])
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    counter.finish()


class Counter:
    """Tells how far a sweep is, on a terminal and after two seconds."""

    def __init__(self, parts: int, wanted: bool) -> None:
        self._parts, self._done, self._since = parts, 0, time.monotonic()
        self._wanted = wanted and sys.stderr.isatty()

    def add(self, parts: int) -> None:
        self._done += parts
        if self._wanted and time.monotonic() - self._since > 2:
            print(f"\r{self._done} of {self._parts} parts", end="", file=sys.stderr)

    def finish(self) -> None:
        if self._wanted and time.monotonic() - self._since > 2:
            print("\r\x1b[K", end="", file=sys.stderr)
