#!/usr/bin/env python3
"""Prints the licences of all crates that are linked into the command, each text once.

scripts/third_party.py > THIRD-PARTY.txt
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
COMMAND = "suimon-cli"
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")


def metadata() -> dict[str, Any]:
    """What cargo knows of the packages that this machine's build takes."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
    known: dict[str, Any] = json.loads(found.stdout)
    return known


def linked(known: dict[str, Any]) -> list[dict[str, Any]]:
    """The packages of others that end up in the command: no tool of the build, no test's."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == COMMAND]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_linked and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    others = [packages[key] for key in seen if packages[key]["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    """The licences that a package brings."""
    folder = Path(package["manifest_path"]).parent
    named = {path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES)}
    if package["license_file"]:
        named.add(folder / package["license_file"])
    return [path.read_text(errors="replace").strip() for path in sorted(named)]


def main() -> int:
    packages = linked(metadata())
    users = defaultdict(list)
    print(f"Suimon's command contains {len(packages)} packages of others, under these licences.\n")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license'] or 'see below'}; {package['repository'] or 'no repository named'}")
        for text in texts(package):
            users[text].append(name)
    for text, names in sorted(users.items(), key=lambda each: each[1]):
        print(f"\n{'=' * 80}\n{', '.join(names)}\n{'-' * 80}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
