#!/usr/bin/env python3
"""Runs what the documentation shows: every block of code in every Markdown page, in a folder with the files it names.

    scripts/check_examples.py [--suimon COMMAND] [--write] [PAGE...]

- `sh` runs in one shell. A `text` block right behind it is what its only command prints, in whole or from the second
  paragraph on; `--write` rewrites such blocks, for when results have changed for a reason. Commands that need root,
  another host or much time are looked at and not run: see rehearse.py.
- `console` has commands behind `$` or `name$`, which run so; the other lines are output.
- `toml` is a scenario, or a part of one that is added to the last whole one, and is run. `csv` is a schedule.
- `python` blocks of a page run one after another in one interpreter.
- A block becomes a file for the blocks after it where the line before it ends with a colon and names one in backticks,
  or where its first line is a comment with the name (`# wired.toml: what it is`).
- `json` is parsed. Blocks of other languages are listed as untested.
- A page that adds something to the project itself is left to check_walk.py.
- `# untested: why`, alone on a line or behind a command, exempts the lines up to the next empty one, or this command.
  The end of the run lists and counts them.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from check_text import ROOT, files

LIMIT_S = 60
# What a reader has who follows the pages: the project's examples, and recordings of their own.
SHIPPED = ["scenarios", "papers", "traces", "crates/capture/tests/data"]
OWN = {
    "my.down": "traces/cellular-3g.down",
    "lte.down": "traces/cellular-3g.down",
    "my.pcapng": "crates/capture/tests/data/every-ack.pcap",
}
OWN_SCENARIOS = ["my.toml", "my-many-runs.toml"]
# What rehearse.py stands in for; of suimon, what touches the kernel.
REHEARSED = [
    "suimon", "make", "sudo", "curl", "iperf3", "ssh", "scp", "tcpdump", "pip", "ip", "ss", "sysctl", "systemctl",
    "ethtool", "mptcpize", "apt-get", "ray",
]  # fmt: skip
# The page whose blocks change the project itself.
WALK = ROOT / "docs/guides/new-algorithm.md"
UNTESTED = re.compile(r"(?:#|//) untested: (\S.*)")
# A block's file: `commute.csv` in the prose before it, or wired.toml in its first line.
NAMED = re.compile(r"`([\w.-]+\.(?:toml|py|csv|sh))`[^`]*:$|^# ([\w.-]+\.(?:toml|py|csv|sh))(?::.*)?$")
# A link between r1 and r2 and a flow over it, for parts of scenarios on pages that show no whole one.
SCENARIO = """\
duration = "2s"
[[link]]
name = "bottleneck"
between = ["r1", "r2"]
rate = "2Mbit"
delay = "20ms"
[[flow]]
name = "main"
from = "r1"
to = "r2"
"""


@dataclass
class Block:
    """One fenced block: where its text begins, in lines from 1."""

    page: Path
    line: int
    language: str
    text: str
    # Nothing but empty lines between the block before and this one.
    follows: bool
    # The last line of prose before it.
    before: str


@dataclass
class Outcome:
    """What came of the blocks of a page."""

    problems: list[str] = field(default_factory=list)
    run: dict[str, int] = field(default_factory=dict)
    untested: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        self.run[what] = self.run.get(what, 0) + number


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page; those of no language are `text`."""
    fence, language, start = "", "", 0
    held: list[str] = []
    follows, prose = False, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        match = re.match(r"( {0,3})(`{3,})\s*([\w-]*)", line)
        if not fence:
            if match:
                fence, language, start, held = match[2], match[3] or "text", number + 1, []
            elif line.strip():
                follows, prose = False, line
        elif match and match[2] == fence and not match[3]:
            yield Block(page, start, language, "".join(f"{each}\n" for each in held), follows, prose)
            fence, follows, prose = "", True, ""
        else:
            held.append(line)


def tested(block: Block, outcome: Outcome) -> str:
    """The block's text with what is marked as untested blanked, so that lines keep their numbers."""
    kept = []
    exempt = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        mark = UNTESTED.search(line)
        exempt = line.strip() != "" and (exempt or bool(mark and line.lstrip().startswith(("#", "//"))))
        if mark:
            outcome.untested.append(f"{block.page.relative_to(ROOT)}:{number}: {mark[1]}")
        kept.append("" if mark or exempt else line)
    return "\n".join(kept) + "\n"


def commands(text: str) -> int:
    """How many lines of a shell block do something."""
    lines = text.replace("\\\n", " ").splitlines()
    return sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))


class Runner:
    """Runs the blocks of one page in a folder of its own."""

    def __init__(self, suimon: Path, folder: Path, write: bool, limit_s: float = LIMIT_S) -> None:
        self.folder, self.write, self.limit_s = folder, write, limit_s
        self.outcome = Outcome()
        self.scenario = SCENARIO
        self.anew: list[tuple[Block, str]] = []
        tools = folder / ".bin"
        tools.mkdir()
        for name in REHEARSED:
            (tools / name).symlink_to(ROOT / "scripts/rehearse.py")
        self.rehearsed = folder / ".rehearsed"
        self.environment = {
            **os.environ,
            "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "MPLBACKEND": "agg",
            "REHEARSED": str(self.rehearsed),
            "REHEARSED_MAKEFILE": str(ROOT / "Makefile"),
            "REHEARSED_SUIMON": str(suimon),
        }
        for name in SHIPPED:
            shutil.copytree(ROOT / name, folder / name)
        for name, source in OWN.items():
            shutil.copy(ROOT / source, folder / name)
        for name in OWN_SCENARIOS:
            (folder / name).write_text(SCENARIO)

    def execute(self, command: list[str], text: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command within its time."""
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.folder, env=self.environment,
                              text=True, start_new_session=True) as process:
            try:
                printed, errors = process.communicate(text, timeout=self.limit_s)
            except subprocess.TimeoutExpired:
                # What it started goes with it.
                os.killpg(process.pid, signal.SIGKILL)
                return 124, "", f"not done after {self.limit_s:.0f} s"
        return process.returncode, printed, errors

    def fail(self, block: Block, line: int, why: str) -> None:
        self.outcome.problems.append(f"{block.page.relative_to(ROOT)}:{line}: {why.strip()}")

    def page(self, page: Path, found: Iterable[Block]) -> Outcome:
        """Runs blocks of a page."""
        python: list[Block] = []
        before: tuple[Block, str] | None = None
        for block in found:
            if block.language == "text":
                if block.follows and before:
                    self.compare(*before, block)
                before = None
                continue
            before = None
            text = tested(block, self.outcome)
            if named := NAMED.search(block.before) or NAMED.search(block.text.partition("\n")[0]):
                (self.folder / (named[1] or named[2])).write_text(block.text)
            if not text.strip():
                continue
            match block.language:
                case "sh" | "bash":
                    before = self.shell(block, text)
                case "console":
                    prompt = re.compile(r"[\w-]*[$#] (.*)")
                    typed = (prompt.match(line) for line in text.splitlines())
                    self.shell(block, "".join(f"{line[1] if line else ''}\n" for line in typed))
                case "json":
                    self.json(block, text)
                case "toml":
                    self.toml(block, text)
                case "csv":
                    self.schedule(block, text)
                case "python":
                    python.append(block)
                    self.python(python)
                case other:
                    self.outcome.untested.append(f"{page.relative_to(ROOT)}:{block.line}: no rule for {other}")
        lines = page.read_text().splitlines()
        for shown, current in reversed(self.anew):
            lines[shown.line - 1 : shown.line - 1 + shown.text.count("\n")] = current.splitlines()
            print(f"{page.relative_to(ROOT)}:{shown.line}: rewritten")
        if self.anew:
            page.write_text("\n".join(lines) + "\n")
        return self.outcome

    def shell(self, block: Block, text: str) -> tuple[Block, str] | None:
        """Runs a shell block; gives what it printed where that may be compared."""
        trap = "set -euo pipefail; trap 'echo \"suimon-line $LINENO\" >&2' ERR\n"
        (self.folder / ".block").write_text(trap + text)
        code, printed, errors = self.execute(["bash", ".block"])
        if code:
            line = re.search(r"suimon-line (\d+)", errors)
            at = block.line + int(line[1]) - 2 if line else block.line
            self.fail(block, at, f"exit code {code}: " + re.sub(r"suimon-line \d+\n", "", errors)[-600:])
            return None
        looked_at = len(self.rehearsed.read_text().splitlines()) if self.rehearsed.exists() else 0
        self.rehearsed.unlink(missing_ok=True)
        self.outcome.count("commands looked at", looked_at)
        self.outcome.count("commands run", max(commands(text) - looked_at, 0))
        if looked_at:
            return None
        return (block, printed) if commands(text) == 1 else None

    def compare(self, block: Block, printed: str, shown: Block) -> None:
        """Holds the text that a page shows against what its command printed."""
        wanted = shown.text.rstrip("\n")
        lines = [line.rstrip() for line in printed.strip().splitlines()]
        paragraphs = [each for each in "\n".join(lines).split("\n\n") if not each.startswith("Report: ")]
        length = len(wanted.split("\n\n"))
        current = "\n\n".join(paragraphs if length == len(paragraphs) else paragraphs[1 : 1 + length])
        if wanted == current:
            self.outcome.count("outputs")
        elif self.write:
            self.anew.append((shown, current))
        else:
            self.fail(shown, shown.line, f"it should say (--write writes it):\n{current}")

    def toml(self, block: Block, text: str) -> None:
        """Runs a scenario, or what a page would add to one."""
        try:
            keys = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            return self.fail(block, block.line, str(error))
        whole = "link" in keys and "flow" in keys
        scenario = text if whole else f"{self.scenario}\n{text}"
        (self.folder / "block.toml").write_text(scenario)
        code, _, errors = self.execute(["suimon", "run", "block.toml", "--no-files"])
        if code:
            return self.fail(block, block.line, errors)
        if whole:
            self.scenario = text
        self.outcome.count("scenarios")
        return None

    def json(self, block: Block, text: str) -> None:
        """Parses a document."""
        try:
            json.loads(text)
        except ValueError as error:
            return self.fail(block, block.line, str(error))
        self.outcome.count("JSON documents")
        return None

    def schedule(self, block: Block, text: str) -> None:
        """Reads a link's rate over time."""
        (self.folder / "block.csv").write_text(text)
        code, _, errors = self.execute(["suimon", "link", "describe", "schedule=block.csv 40ms", "--length", "1s"])
        if code:
            return self.fail(block, block.line, errors)
        self.outcome.count("schedules")
        return None

    def python(self, page: list[Block]) -> None:
        """Runs the last of a page's Python blocks, behind those before it."""
        script = ""
        for block in page:
            script += "\n" * (block.line - 1 - script.count("\n")) + tested(block, Outcome())
        name = str(page[-1].page.relative_to(ROOT))
        program = "import sys; exec(compile(sys.stdin.read(), sys.argv[1], 'exec'), {'__name__': '__main__'})"
        code, _, errors = self.execute([sys.executable, "-c", program, name], script)
        if code:
            at = re.findall(rf'File "{re.escape(name)}", line (\d+)', errors)
            return self.fail(page[-1], int(at[-1]) if at else page[-1].line, errors[-800:])
        self.outcome.count("Python blocks")
        return None


def run(page: Path, suimon: Path, write: bool) -> Outcome:
    """Runs a page in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="suimon-examples-") as folder:
        return Runner(suimon, Path(folder), write).page(page, blocks(page))


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the code blocks of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="Markdown pages [default: all]")
    parser.add_argument("--suimon", type=Path, default=ROOT / "target/debug/suimon", help="the command")
    parser.add_argument("--write", action="store_true", help="rewrite shown output")
    options = parser.parse_args()
    suimon = options.suimon.resolve()
    if not suimon.exists():
        parser.error(f"no {suimon}: run `make python`")
    pages = [path.resolve() for path in options.pages] or [
        path for path in files() if path.suffix == ".md" and path != WALK
    ]
    lock = threading.Lock()
    total = Outcome()

    def one(page: Path) -> None:
        outcome = run(page, suimon, options.write)
        with lock:
            total.problems += outcome.problems
            total.untested += outcome.untested
            for what, number in outcome.run.items():
                total.count(what, number)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, pages))
    for line in sorted(total.untested):
        print(f"untested: {line}")
    for line in sorted(total.problems):
        print(line, file=sys.stderr)
    counts = ", ".join(f"{number} {what}" for what, number in sorted(total.run.items()))
    print(f"check_examples: {len(pages)} pages: {counts}; {len(total.untested)} untested; {len(total.problems)} wrong")
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
