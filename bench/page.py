"""Tables on the project's pages, between the marks `<!-- NAME: written by COMMAND -->` and `<!-- end of NAME -->`."""

from __future__ import annotations

from pathlib import Path

from measure import BenchError


def write_between(page: Path, name: str, text: str) -> None:
    """Puts `text` between the marks `name` of a page, in place of what is there."""
    begin, end = f"<!-- {name}: written by ", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(begin)
    command, _, rest = rest.partition("-->")
    _, _, after = rest.partition(end)
    if not after:
        raise BenchError(f"{page.name} has nothing between {begin}...--> and {end}")
    page.write_text(f"{before}{begin}{command}-->\n\n{text}\n\n{end}{after}")
