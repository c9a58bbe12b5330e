"""Sweeps on threads and on Ray: the same bytes, whatever was killed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import suimon as sm
from test_own import Fifo, PlainReno

AXES = {"link.rate": ["1Mbit", "2Mbit", "4Mbit"], "sender": ["reno", "cubic", "fs-at"]}


def scenario(seconds: float = 2.0) -> sm.Scenario:
    return sm.Scenario.over(sm.Link("2Mbit 40ms 30packets loss=0.1%"), "cubic", seconds=seconds)


def digests(folder: Path) -> dict[str, str]:
    """Every file of the parts by its name, with a digest of its bytes."""
    files = sorted(folder.glob("part-*/*.parquet"))
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".unfinished")]


def test_axes_cross_and_every_run_is_there_once(tmp_path: Path) -> None:
    sweep = sm.sweep(scenario(), AXES, seeds=4)
    assert (sweep.runs, sweep.parts) == (36, 36)
    parts = sweep.to_parquet(tmp_path / "out")
    frame = parts.to_polars("runs").sort("run")
    assert frame["run"].to_list() == list(range(1, 37))
    assert frame.columns[:6] == ["run", "scenario", "rate", "sender", "axis_seed", "seed"]
    assert frame["sender"].to_list()[:9] == ["reno"] * 4 + ["cubic"] * 4 + ["fs-at"]
    collected = sweep.collect()
    assert collected.runs["goodput_bps"].to_list() == frame["goodput_bps"].to_list()


def test_a_finished_sweep_is_not_done_again_and_another_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sm.sweep(scenario(), AXES).to_parquet(out, progress=False)
    before = {path: path.stat().st_mtime_ns for path in out.glob("part-*/*")}
    sm.sweep(scenario(), AXES, jobs=1).to_parquet(out)
    assert {path: path.stat().st_mtime_ns for path in out.glob("part-*/*")} == before
    with pytest.raises(sm.InputError, match="holds a sweep with another scenario file"):
        sm.sweep(scenario(), {"sender": ["reno"]}).to_parquet(out)
    sm.sweep(scenario(), {"sender": ["reno"]}).to_parquet(out, restart=True)
    assert len(digests(out)) == 3


def test_key_paths_short_and_long_and_classes_as_values() -> None:
    axes: dict[str, list[object]] = {
        "duration": ["1s"],
        "link.bottleneck.delay": ["1ms"],
        "queue": ["red", Fifo],
        "sender": [PlainReno],
    }
    sweep = sm.sweep(scenario(), axes)
    result = sweep.collect()
    assert result.queues["discipline"].to_list() == ["red", "fifo"]
    assert result.flows["algorithm"].to_list() == ["plain-reno"] * 2
    assert "flow.*.cc" in sweep.toml


def test_what_a_sweep_cannot_be_is_refused_by_name() -> None:
    def message(*arguments: object, **keywords: object) -> str:
        with pytest.raises(sm.InputError) as raised:
            sm.sweep(*arguments, **keywords)  # type: ignore[arg-type]
        return str(raised.value)

    assert 'link.*.rat: unknown key (did you mean "rate"?)' in message(scenario(), {"link.rat": ["1Mbit"]})
    assert '"64" has no unit' in message(scenario(), {"link.rate": ["1Mbit", "64"]})
    assert "axes: sender: is empty" in message(scenario(), {"sender": []})
    assert 'engine: "dask" is none; accepted: threads, ray' in message(scenario(), engine="dask")
    assert 'address: goes with engine="ray"' in message(scenario(), address="auto")
    assert "seeds: 0 is out of range" in message(scenario(), seeds=0)
    assert "scenario: 3 is no scenario" in message(3)
    assert "seeds: the scenario says 3 itself" in message(sm.Scenario.over("1Mbit 1ms", seeds=3), seeds=2)


def test_on_a_kernel_the_command_makes_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "suimon"
    command.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then echo suimon {sm.__version__}; exit; fi
cp "$2" {tmp_path}/given.toml
echo "$@" > {tmp_path}/words
""")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sweep = sm.sweep(scenario(), {"sender": ["reno", "cubic"]}, on="lab", jobs=2)
    assert sweep.to_parquet(tmp_path / "out", restart=True).runs == sweep.runs
    words = (tmp_path / "words").read_text().split()
    assert words[0] == "sweep" and words[2:] == ["--lab", "--out", f"{tmp_path}/out", "--jobs", "2", "--restart"]
    assert (tmp_path / "given.toml").read_text() == sweep.toml
    with pytest.raises(sm.InputError, match="collect: keeps what the simulator gives"):
        sweep.collect()
    with pytest.raises(sm.InputError, match="on: 'moon' is no place to run; accepted: simulator, lab, live"):
        sm.sweep(scenario(), on="moon")  # type: ignore[arg-type]


def test_a_million_runs_are_planned_and_not_held() -> None:
    sweep = sm.sweep(scenario(), {"link.rate": [f"{nth}kbit" for nth in range(100, 200)]}, seeds=100_000)
    assert sweep.runs == 10_000_000
    assert sweep.parts == 100_000
    with pytest.raises(sm.InputError, match="makes more runs; accepted: at most 100000"):
        sweep.collect()


ray = pytest.importorskip("ray")


def workers() -> set[int]:
    """The processes that take tasks."""

    def who() -> int:
        time.sleep(0.3)
        return os.getpid()

    task = ray.remote(num_cpus=1)(who)
    return set(ray.get([task.remote() for _ in range(4)]))


def at_work(pids: set[int]) -> int:
    """One of the processes that makes parts now."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in pids:
            if b"ray::work" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    raise AssertionError("no worker works")


def wait_for_parts(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(folder.glob("part-*"))) < count:
        assert time.monotonic() < deadline, "the sweep makes no parts"
        time.sleep(0.01)


def test_ray_gives_the_bytes_of_threads_though_a_worker_is_killed(tmp_path: Path, cluster: str) -> None:
    arguments = (scenario(20.0), AXES)
    sm.sweep(*arguments, seeds=30).to_parquet(tmp_path / "threads", progress=False)
    out = tmp_path / "ray"
    victims = workers()
    assert len(victims) == 2
    sweep = sm.sweep(*arguments, seeds=30, engine="ray")
    raised: list[BaseException] = []

    def run() -> None:
        try:
            sweep.to_parquet(out, progress=False)
        except BaseException as error:
            raised.append(error)

    driver = threading.Thread(target=run)
    driver.start()
    wait_for_parts(out, 20)
    os.kill(at_work(victims), signal.SIGKILL)
    killed_at = len(list(out.glob("part-*")))
    driver.join(timeout=120)
    assert not driver.is_alive()
    assert not raised
    assert killed_at < sweep.parts
    assert digests(out) == digests(tmp_path / "threads")


def test_a_killed_driver_is_resumed_with_nothing_lost_or_twice(tmp_path: Path, cluster: str) -> None:
    out = tmp_path / "ray"
    script = (
        "import sys; import suimon as sm; from test_sweep import AXES, scenario\n"
        f"sm.sweep(scenario(20.0), AXES, seeds=30, engine='ray', address={cluster!r}).to_parquet({str(out)!r})"
    )
    driver = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent)
    wait_for_parts(out, 10)
    driver.kill()
    driver.wait()
    sweep = sm.sweep(scenario(20.0), AXES, seeds=30, engine="ray")
    assert 10 <= len(list(out.glob("part-*"))) < sweep.parts
    parts = sweep.to_parquet(out, progress=False)
    runs = parts.to_polars("runs")["run"].sort().to_list()
    assert runs == list(range(1, 271))
    sm.sweep(scenario(20.0), AXES, seeds=30).to_parquet(tmp_path / "threads", progress=False)
    assert digests(out) == digests(tmp_path / "threads")
    # Workers of the killed driver may outlive it by a moment; what they leave goes when the sweep is opened again.
    sweep.to_parquet(out, progress=False)
    assert not leftovers(out)
    assert digests(out) == digests(tmp_path / "threads")


def test_errors_and_classes_reach_workers_and_come_back(tmp_path: Path, cluster: str) -> None:
    sweep = sm.sweep(scenario(1.0), {"sender": [PlainReno, "reno"]}, engine="ray")
    frame = sweep.to_parquet(tmp_path / "own").to_polars("flows")
    assert frame["delivered_bytes"][0] == frame["delivered_bytes"][1]

    class Broken(PlainReno):
        def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
            raise LookupError("broken in the worker")

    with pytest.raises(LookupError, match="broken in the worker"):
        sm.sweep(scenario(1.0), {"sender": [Broken]}, engine="ray").to_parquet(tmp_path / "broken")
