"""Parts of a sweep as tasks of Ray. Nothing but counts comes back to the driver."""

from __future__ import annotations

from typing import Any

from suimon._work import Counter, Job, batches, work
from suimon.errors import InputError


def on_cluster(job: Job, missing: list[int], address: str | None, progress: bool) -> None:
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
    counter = Counter(len(missing), progress)
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
