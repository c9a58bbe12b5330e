"""What a command costs: CPU time, memory and instructions."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "target" / "bench"
# One core simulates one run; a second thread would only look for work and be paid for it.
ENVIRONMENT = {**os.environ, "RAYON_NUM_THREADS": "1"}


class BenchError(Exception):
    """What was run did not do what it should."""


@dataclass(frozen=True)
class Usage:
    """As the operating system accounts for it."""

    cpu: float
    wall: float
    peak_bytes: int


def run(command: list[str], what: str, environment: Mapping[str, str] = ENVIRONMENT) -> str:
    """Runs a command to its end and gives its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError as error:
        raise BenchError(f"{what}: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise BenchError(f"{what}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def usage(command: list[str]) -> Usage:
    launcher = compiled("launch")
    with tempfile.NamedTemporaryFile("r", prefix="usage-") as output:
        run([str(launcher), output.name, *command], command[0])
        wall, user, system, kilobytes = output.read().split()
    return Usage(float(user) + float(system), float(wall), int(kilobytes) * 1024)


def compiled(name: str) -> Path:
    """The program of that name of this folder, in C."""
    source, program = HERE / f"{name}.c", WORK / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        WORK.mkdir(parents=True, exist_ok=True)
        run(["cc", "-O2", "-Wall", "-o", str(program), str(source)], "cc")
    return program


def median(values: list[float]) -> float:
    return statistics.median(values)


def median_usage(command: list[str], times: int) -> Usage:
    all_of_them = [usage(command) for _ in range(times)]
    return Usage(
        median([one.cpu for one in all_of_them]),
        median([one.wall for one in all_of_them]),
        max(one.peak_bytes for one in all_of_them),
    )


def counter() -> tuple[str, Callable[[list[str]], int]] | None:
    """How instructions can be counted here: by the processor, or else by simulating it."""
    if shutil.which("perf"):
        try:
            _perf(["true"])
        except BenchError:
            pass
        else:
            return "perf", _perf
    if shutil.which("valgrind"):
        return "callgrind", callgrind
    return None


def _perf(command: list[str]) -> int:
    with tempfile.NamedTemporaryFile("r", prefix="perf-") as output:
        run(["perf", "stat", "-x,", "-e", "instructions:u", "-o", output.name, "--", *command], command[0])
        found = re.search(r"^(\d+),,instructions", output.read(), re.MULTILINE)
    if not found:
        raise BenchError("perf counts no instructions here")
    return int(found[1])


def callgrind(command: list[str]) -> int:
    with tempfile.NamedTemporaryFile("r", prefix="callgrind-") as output:
        run(
            ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output.name}", *command],
            command[0],
        )
        found = re.search(r"^(?:summary|totals): (\d+)", output.read(), re.MULTILINE)
    if not found:
        raise BenchError("callgrind counted nothing")
    return int(found[1])


def version(command: list[str], pattern: str) -> str:
    """The first match of `pattern` in what a command says of itself."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "unknown"
