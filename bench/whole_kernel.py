"""The whole road on a real kernel, in virtual time or in real time, beside the simulator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import WORK, run
from whole_scenario import scenario

# The tables of a result that have rows for each run.
TABLES = ["runs", "flows", "aggregates", "queues", "emulated"]
FOLDER = WORK / "whole"
# Of fewer packets, the one in a hundred that is latest is the only one.
FEW = 100

Result = dict[str, list[dict[str, Any]]]


def results(suimon: Path, where: str, names: Sequence[str], seed: int, duration: str) -> list[Result]:
    """Each combination under this seed, both worlds in one result; `where` is `--lab` or `--live`.

    The same job takes its record again.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = suimon.read_bytes()
    records = {}
    for name in names:
        job = hashlib.sha256(program + road([name]).encode()).hexdigest()[:12]
        records[name] = FOLDER / f"{name}, {duration}, seed {seed}, {job}{where}.json"
    missing = [name for name in names if not records[name].exists()]
    if missing:
        file = FOLDER / "road.toml"
        file.write_text(road(missing))
        command = [str(suimon), "run", str(file), where, "--beside-simulation", "--json", "--no-files"]
        for setting in ("seeds=1", f"seed={seed}", f"duration={duration}"):
            command += ["--set", setting]
        keep(json.loads(run(command, "the road on a kernel")), {name: records[name] for name in missing})
    return [json.loads(record.read_text()) for record in records.values()]


def road(names: Sequence[str]) -> str:
    """The scenario of these combinations. The kernel's CUBIC is not that of RFC 9438; the simulator has both."""
    return scenario(names).replace('cc = "cubic"', 'cc = "cubic-linux"')


def keep(result: Result, records: dict[str, Path]) -> None:
    """Writes the part of each combination into a file of its own."""
    for name, record in records.items():
        record.write_text(json.dumps(of(result, "setup", name)))


def of(result: Result, label: str, value: str) -> Result:
    """The rows of the runs with this label, such as the world: `simulated` or `live`."""
    numbers = {one["run"] for one in result["runs"] if one[label] == value}
    return {name: [row for row in result.get(name, []) if row["run"] in numbers] for name in TABLES}


def latest(result: Result) -> float:
    """How late the emulator gave the hosts 99 % of the packets of a link, in us: of the link where that is most.

    Links that some handshakes pass do not count.
    """
    return max(float(link["late_p99_us"]) for link in result["emulated"] if link["packets"] >= FEW)
