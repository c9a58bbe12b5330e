"""Parts of a sweep as tasks of Ray. Workers write them; nothing but counts comes back to the driver."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from dataclasses import dataclass
from typing import Any

from suimon import _suimon
from suimon.errors import InputError
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


def work(job: Job, parts: list[int]) -> int:
    """Makes ``parts``, as far as they are not there; gives how many."""
    return job.sweep().make_parts(job.folder, parts, f"{platform.node()}-{os.getpid()}")


def batches(missing: list[int], cores: int) -> list[list[int]]:
    """``missing`` in batches of falling size, so that tasks are few and yet all cores end together."""
    found, begin = [], 0
    while begin < len(missing):
        size = math.ceil((len(missing) - begin) / (4 * cores))
        found.append(missing[begin : begin + size])
        begin += size
    return found


def make(job: Job, missing: list[int], address: str | None, progress: bool) -> None:
    """Makes the ``missing`` parts of ``job`` on the cluster at ``address``.

    A task whose worker dies is done again as often as it takes; parts that it had made are not.
    """
    try:
        import ray
    except ImportError:
        raise InputError('engine: "ray" takes Ray; accepted: pip install suimon[ray], or engine="threads"') from None
    if not missing:
        return
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    task = ray.remote(num_cpus=1, max_retries=-1)(work)
    shared = ray.put(job)
    pending = {task.remote(shared, batch): len(batch) for batch in batches(missing, cores)}
    counter = _Counter(len(missing), progress)
    while pending:
        for done in ray.wait(list(pending), num_returns=1, timeout=1.0)[0]:
            _outcome(ray, done)
            counter.add(pending.pop(done))
    counter.finish()


def _outcome(ray: Any, done: Any) -> None:
    """Raises what the task raised, as the worker did."""
    try:
        ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise


class _Counter:
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
