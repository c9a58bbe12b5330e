"""The whole road on a real kernel in virtual time, beside the simulator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measure import WORK, run
from whole_scenario import scenario

# Tables of a result that have a row for each run, flow, stream or link of a run.
TABLES = ["runs", "flows", "aggregates", "queues", "emulated"]


def runs(suimon: Path, names: Sequence[str], seeds: int, duration: str) -> Iterator[dict[str, Any]]:
    """The result of each combination and seed, both worlds in one; the same job takes its record again."""
    folder = WORK / "whole"
    folder.mkdir(parents=True, exist_ok=True)
    version = run([str(suimon), "--version"], "the version").split()[1]
    for name in names:
        file = folder / "road.toml"
        for seed in range(1, seeds + 1):
            record = folder / f"{version} {name} {duration} seed {seed}.json"
            if not record.exists():
                file.write_text(scenario([name]))
                command = [str(suimon), "run", str(file), "--lab", "--beside-simulation", "--json", "--no-files"]
                for setting in ("seeds=1", f"seed={seed}", f"duration={duration}"):
                    command += ["--set", setting]
                record.write_text(run(command, f"{name}, seed {seed}"))
            yield json.loads(record.read_text())


def of_world(result: dict[str, Any], world: str) -> dict[str, Any]:
    """The rows of one world, `simulated` or `live`."""
    numbers = {one["run"] for one in result["runs"] if one["world"] == world}
    return {name: [row for row in result.get(name, []) if row["run"] in numbers] for name in TABLES}
