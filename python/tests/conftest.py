"""What tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
import suimon as sm


@pytest.fixture(scope="session")
def result() -> sm.Result:
    """Three senders over a short link, two seeds each."""
    link = sm.Link("2Mbit", delay="20ms", buffer="30 packets")
    return sm.compare(link, ["reno", "cubic", "fs-at"], seconds=5, seeds=2)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A recorded link: a packet of 1500 bytes every 3 ms, 4 Mbit/s."""
    path = tmp_path / "my cell.down"
    path.write_text("".join(f"{3 * nth}\n" for nth in range(1, 400)))
    return path
