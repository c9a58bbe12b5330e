#!/usr/bin/env python3
"""What no compiler checks: links and file names in the documentation, wording, length of algorithm files."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Built, installed or simulated, not written; so is what is hidden, but for .ci.
SKIPPED = {"__pycache__", "artifacts", "corpus", "node_modules", "suimon-out", "target"}
TEXT = {".rs", ".md", ".toml", ".py", ".sh", ".js", ".mjs", ".css", ".html", ".txt", ""}
FORBIDDEN = [
    (re.compile(r"\b(todo|unimplemented|dbg)!\s*\("), "left over from writing"),
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "an open end: finish it, or say it in LIMITATIONS.md"),
    (re.compile(r"(?<![\w.])/(work|root|home)/"), "a path of one machine"),
]
ALGORITHM_LINES = 350
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
# A file's name in backticks: with a folder, and without wildcards or placeholders.
NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:rs|toml|md|py|sh|js|mjs|css|html|down))`")


def files() -> Iterator[Path]:
    """Every text file that people write."""
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            hidden = path.name.startswith(".") and path.name != ".ci"
            if hidden or path.name in SKIPPED or path.is_symlink():
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix in TEXT:
                yield path


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a Markdown text that are no code block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(text: str) -> set[str]:
    """What links may name behind a #, as GitHub makes it from headings."""
    found = set()
    for _, line in prose(text):
        if heading := re.match(r"#+\s+(.*)", line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def broken_links(path: Path, text: str) -> Iterator[str]:
    """Links to files and headings that are not there, and names of files that are not."""
    for number, line in prose(text):
        where = f"{path.relative_to(ROOT)}:{number}"
        for match in LINK.finditer(line):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            aim = path.parent / name if name else path
            if not aim.exists():
                yield f"{where}: no file {target}"
            elif anchor and aim.suffix == ".md" and anchor not in anchors(aim.read_text()):
                yield f"{where}: no heading #{anchor} in {aim.name}"
        for named in NAMED.findall(line):
            places = [ROOT, path.parent, *(ROOT / "crates").iterdir()]
            # What a run writes is not there before it.
            if not named.startswith("suimon-out/") and not any((place / named).exists() for place in places):
                yield f"{where}: no file {named}"


def main() -> int:
    problems: list[str] = []
    for path in files():
        text = path.read_text()
        if path.suffix == ".md":
            problems += broken_links(path, text)
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, why in FORBIDDEN:
                if match := pattern.search(line):
                    problems.append(f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {why}")
    for path in sorted((ROOT / "crates/algorithms/src").glob("*/*.rs")):
        length = path.read_text().split("#[cfg(test)]")[0].count("\n")
        if length >= ALGORITHM_LINES:
            limit = f"{ALGORITHM_LINES - 1} at most"
            problems.append(f"{path.relative_to(ROOT)}: {length} lines before its tests, {limit}")
    print("\n".join(problems) if problems else "check_text: passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
