#!/usr/bin/env python3
"""Does what docs/guides/new-algorithm.md tells its reader to do, in a copy of the project, and compares what it shows.

    scripts/check_walk.py [--write]

- The last line of prose before a block says where it goes: "`NAME` in `FOLDER`" is a file of that text, or what comes
  behind the text that it has by then. "`FOLDER/FILE`:" is a file that is there: each line of the block that names the
  new thing goes behind those that begin like it.
- `sh` and `text` blocks are those of check_examples.py. `cargo` runs in the copy, and `suimon` is what it builds there.

The copy lies in the target folder and is brought up to date, so that only what changed is built again. It is built by
itself and without the parts that the guide does not come to, so that other tests can go on beside it.
"""

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_examples import WALK, Block, Runner, blocks
from check_text import ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COPY = TARGET / "walk"
BUILT = TARGET / "walk-target"
NEW_FILE = re.compile(r"`([\w.-]+)` in `([\w./-]+)`(?:[.:]|$)")
OLD_FILE = re.compile(r"`([\w./-]+/[\w.-]+)`:$")


def inserted(text: str, lines: str, name: str) -> str:
    """`text` with each of `lines` that has `name`, behind the first lines in a row that begin like it up to there."""
    found = text.splitlines(keepends=True)
    for line in lines.splitlines():
        if name in line:
            alike = [nth for nth, each in enumerate(found) if each.startswith(line.partition(name)[0])]
            if not alike:
                raise SystemExit(f"check_walk: no line begins like {line!r}, which says how {name} joins it")
            last = next(nth for nth in alike if nth + 1 not in alike)
            found.insert(last + 1, f"{line}\n")
    return "".join(found)


def changes(page: list[Block], name: str, root: Path = ROOT) -> dict[str, str]:
    """The files that the guide adds and changes, each with its whole text."""
    found: dict[str, str] = {}
    for block in page:
        if block.language in ("rust", "markdown"):
            if new := NEW_FILE.search(block.before):
                path = f"{new[2]}/{new[1]}"
                found[path] = "\n".join([*filter(None, [found.get(path)]), block.text])
            elif old := OLD_FILE.search(block.before):
                text = found.get(old[1]) or (root / old[1]).read_text()
                found[old[1]] = inserted(text, block.text, name)
            else:
                raise SystemExit(f"check_walk: {block.page}:{block.line}: the line before does not say where this goes")
    return found


def copy(changed: dict[str, str]) -> None:
    """Brings the copy up to date; a file that has its bytes already is not touched."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    wanted = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    wanted |= {name: text.encode() for name, text in changed.items()}
    if COPY.is_dir():
        for path in COPY.rglob("*"):
            if path.is_file() and not path.is_symlink() and str(path.relative_to(COPY)) not in wanted:
                path.unlink()
    for name, content in wanted.items():
        path = COPY / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def build() -> tuple[Path, list[Block], dict[str, str]]:
    """The command as the guide's reader builds it, without optional parts; the guide, and what it adds and changes."""
    page = list(blocks(WALK))
    changed = changes(page, WALK.read_text().partition("`")[2].partition(".rs`")[0])
    TARGET.mkdir(exist_ok=True)
    with (TARGET / "walk.lock").open("w") as lock:
        # Tests of other programs build it as well.
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy(changed)
        command = ["cargo", "build", "--quiet", "-p", "suimon-cli", "--no-default-features", "--locked"]
        subprocess.run([*command, "--target-dir", str(BUILT)], cwd=COPY, check=True)
    return BUILT / "debug/suimon", page, changed


def main() -> int:
    parser = argparse.ArgumentParser(description="Does what the guide to a new algorithm says, in a copy.")
    parser.add_argument("--write", action="store_true", help="rewrite shown output")
    options = parser.parse_args()
    command, page, changed = build()
    os.environ["CARGO_TARGET_DIR"] = str(BUILT)
    with tempfile.TemporaryDirectory(prefix="suimon-walk-") as folder:
        runner = Runner(command, Path(folder), options.write, limit_s=600)
        tool = Path(folder) / ".bin/cargo"
        tool.write_text(f"#!/bin/sh\ncd '{COPY}' && exec '{shutil.which('cargo')}' \"$@\"\n")
        tool.chmod(0o755)
        outcome = runner.page(WALK, [block for block in page if block.language in ("sh", "text")])
    for line in outcome.problems:
        print(line, file=sys.stderr)
    counts = ", ".join(f"{number} {what}" for what, number in sorted(outcome.run.items()))
    print(f"check_walk: {len(changed)} files, {counts}; {len(outcome.problems)} wrong")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
