#!/usr/bin/env python3
"""Fails where a row of the table of promises in docs/bond.md names no test, or one that is not where the row says."""

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PAGE = PROJECT / "docs/bond.md"


def tests() -> dict[str, list[str]]:
    """The names of all functions of the crates, each with the files that have one."""
    found: dict[str, list[str]] = {}
    for source in (PROJECT / "crates").rglob("*.rs"):
        for name in re.findall(r"fn (\w+)\(", source.read_text()):
            found.setdefault(name, []).append(str(source.relative_to(PROJECT)))
    return found


def main() -> int:
    known = tests()
    table = PAGE.read_text().partition("## Promises")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| ---")][1:]
    problems = [] if rows else [f"{PAGE.name}: no table of promises"]
    for row in rows:
        promise, _, backing = row.strip("| ").partition(" | ")
        named = re.findall(r"`(\w+)`", backing)
        if not named and "tests in `" not in backing:
            problems.append(f"{PAGE.name}: no test backs: {promise}")
        problems.extend(f"{PAGE.name}: no test is called {name}" for name in named if name not in known)
        for name, place in re.findall(r"`(\w+)` in `([\w./-]+)`", backing):
            if not any(file.startswith(place) for file in known.get(name, [place])):
                problems.append(f"{PAGE.name}: {name} is not in {place}, but in {', '.join(known[name])}")
    print("\n".join(problems) if problems else f"check_promises: passed ({len(rows)} promises)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
