#!/usr/bin/env python3
"""Measures what the Python package promises, and prints one table.

A call beside the command, a million rows as a data frame, Ray beside threads, algorithms in both languages.
Takes the package and what requirements-dev.txt lists:

    .venv/bin/python bench/python.py [--suimon target/release/suimon] [--only call frame ray own]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import suimon as sm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python/tests"))


def seconds(task: Callable[[], object], repeats: int) -> list[float]:
    """How long ``task`` takes, each time."""
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        task()
        found.append(time.perf_counter() - begun)
    return found


def call(suimon: Path) -> None:
    """A comparison from Python beside the simulation alone, which the command does too."""
    line = ["compare", "--link", "2Mbit 180ms 96kB", "--cc", "reno", "--duration", "10s", "--no-files"]
    command = seconds(lambda: subprocess.run([suimon, *line], stdout=subprocess.DEVNULL, check=True), 30)
    link = sm.Link("2Mbit 180ms 96kB")
    python = seconds(lambda: sm.compare(link, "reno", seconds=10), 200)
    least = seconds(lambda: sm.compare(link, "reno", seconds=0.001), 200)
    print(f"call: command {1e3 * statistics.median(command):.2f} ms, Python {1e3 * statistics.median(python):.2f} ms;")
    print(f"      a run of a simulated millisecond, the call's cost alone: {1e3 * statistics.median(least):.3f} ms")


def frame() -> None:
    """A result of a million samples as data frames; table and frame are made anew each time."""
    scenario = sm.Scenario.over("2Mbit 40ms 30packets", "cubic", seconds=1000, record_interval="10ms", seeds=10)
    for name in ("to_polars", "to_arrow", "to_pandas"):
        wall, processor = [], []
        # The first call imports the library.
        for _ in range(8):
            result = scenario.run(progress=False)
            begun = time.perf_counter(), time.process_time()
            table = result.flow_series
            getattr(table, name)()
            wall.append(1e3 * (time.perf_counter() - begun[0]))
            processor.append(1e3 * (time.process_time() - begun[1]))
        size = f"{len(table)} rows of {len(table.columns)} columns"
        times = f"median {statistics.median(wall[1:]):.0f} ms, least {min(wall[1:]):.0f} ms"
        print(f"frame: {size}, {name}: {times}; processor time {statistics.median(processor[1:]):.0f} ms")


def processor_seconds() -> float:
    """Processor time of this process and all below it so far, living ones as long as they live."""
    children: dict[int, list[int]] = {}
    own: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        own[int(folder.name)] = sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    total, below = 0.0, [os.getpid()]
    while below:
        process = below.pop()
        total += own.get(process, 0.0)
        below += children.get(process, [])
    return total


def ray() -> None:
    """10 000 short runs on two threads and on two workers of Ray, in turn."""
    import ray as cluster

    scenario = sm.Scenario.over("2Mbit 40ms 30packets loss=0.1%", "cubic", seconds=20)
    axes: dict[str, Any] = {"sender": ["reno", "cubic", "vegas", "fs-at", "bic"]}
    cluster.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        # Workers start, and import the package, once in a cluster's life.
        sm.sweep(scenario, axes, seeds=20, engine="ray").to_parquet(out / "warm")

        def rate(engine: Any, nth: int) -> float:
            """Runs per second of wall clock; prints the processor time."""
            before = processor_seconds()
            sweep = sm.sweep(scenario, axes, seeds=2000, engine=engine, jobs=2 if engine == "threads" else None)
            took = seconds(lambda: sweep.to_parquet(out / f"{engine}-{nth}", progress=False), 1)[0]
            print(f"ray: {engine}: {took:.1f} s, of a core {processor_seconds() - before:.1f} s")
            return sweep.runs / took

        ratios = []
        for nth in range(5):
            on_threads, on_ray = rate("threads", nth), rate("ray", nth)
            ratios.append(on_ray / on_threads)
            print(
                f"ray: threads {on_threads:.0f} runs/s, Ray {on_ray:.0f} runs/s: {100 * ratios[-1]:.0f} %", flush=True
            )
        size = sum(file.stat().st_size for file in (out / "ray-0").glob("part-*/*"))
        print(f"ray: median {100 * statistics.median(ratios):.0f} %; {size / 10_000:.0f} bytes a run on disk")
    cluster.shutdown()


def own() -> None:
    """Algorithms in Python beside the same in Rust; they send the same packets."""
    from test_own import Fifo, PlainReno, Quickest

    link = sm.Link("50Mbit", delay="10ms", buffer="100 packets")
    paths = ["20Mbit 20ms", "20Mbit 40ms"]
    pairs: list[tuple[str, Callable[[], sm.Result], Callable[[], sm.Result]]] = [
        ("congestion control", lambda: sm.compare(link, PlainReno), lambda: sm.compare(link, "reno")),
        ("queue discipline", lambda: sm.compare(link, "reno", queues=Fifo), lambda: sm.compare(link, "reno")),
        (
            "path scheduler",
            lambda: sm.compare_paths(paths, Quickest, seconds=30),
            lambda: sm.compare_paths(paths, "lowest-rtt", seconds=30),
        ),
    ]
    for name, in_python, in_rust in pairs:
        ratio = min(seconds(in_python, 3)) / min(seconds(in_rust, 3))
        print(f"own: a {name} in Python: {ratio:.1f} times the time of a run")


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suimon", type=Path, default=ROOT / "target/release/suimon")
    parser.add_argument(
        "--only", nargs="+", choices=["call", "frame", "ray", "own"], default=["call", "frame", "ray", "own"]
    )
    options = parser.parse_args()
    if "call" in options.only:
        call(options.suimon)
    for name, measure in (("frame", frame), ("ray", ray), ("own", own)):
        if name in options.only:
            measure()


if __name__ == "__main__":
    main()
