"""What tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def command() -> Path:
    """The command ``suimon`` that was built with the extension under test."""
    root = Path(__file__).parents[2]
    built = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "debug/suimon"
    assert built.exists(), f"no {built} to compare with: run `make python`"
    return built


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """A cluster on this machine with two workers; gives its address."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Workers import what the tests' own modules define.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
