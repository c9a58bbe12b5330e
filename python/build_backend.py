"""Builds the Python package: maturin, once the charting library of the report page is there.

The library is not kept in the repository; `make setup` brings it, and so does this, so that ``pip install .`` is
all that a fresh clone takes beside Rust and Node.js.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin

WEB = Path(__file__).parents[1] / "crates/report/web"


def _bring_library() -> None:
    if (WEB / "node_modules/uplot").is_dir():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(
            "suimon: building takes npm, from https://nodejs.org; on Debian and Ubuntu: apt-get install npm"
        )
    subprocess.run([npm, "ci", "--prefix", str(WEB), "--omit=dev", "--no-audit", "--no-fund"], check=True)


get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
build_sdist = maturin.build_sdist


def build_wheel(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """A wheel in ``directory``."""
    _bring_library()
    name: str = maturin.build_wheel(directory, settings, metadata)
    return name


def build_editable(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """A wheel in ``directory`` that points here."""
    _bring_library()
    name: str = maturin.build_editable(directory, settings, metadata)
    return name
