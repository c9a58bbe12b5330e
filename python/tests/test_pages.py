"""What pages show runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/python.md"]


def blocks() -> list[tuple[str, str]]:
    """Each block of Python, with a name for it."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for nth, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE), 1):
            found.append((f"{page}-{nth}", block))
    return found


@pytest.mark.parametrize("block", [block for _, block in blocks()], ids=[name for name, _ in blocks()])
def test_a_block_of_python_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "page", "exec"), {})
