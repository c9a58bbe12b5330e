"""Comparisons on a kernel, which the command ``suimon`` runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from suimon import _suimon
from suimon.errors import InputError, SuimonError

#: The command's option for each kernel.
KERNELS = {"lab": "--lab", "live": "--live"}


def measured(request: str, on: str) -> _suimon.Findings:
    """Has the command run the comparison, and takes its results.

    Raises:
        InputError: The command is missing, is of another version, or refuses the comparison.
        SuimonError: The kernel does not allow it; the message is the command's.
    """
    line = f"{_suimon.command(request)} {KERNELS[on]}"
    with tempfile.TemporaryDirectory(prefix="suimon-") as folder:
        results = Path(folder) / "results"
        _run([_command(on), *shlex.split(line)[1:]], SUIMON_RESULTS=str(results))
        return _suimon.measured(request, line, results.read_bytes())


def swept(text: str, directory: str, on: str, options: list[str]) -> None:
    """Has the command make the sweep of a scenario whose relative paths are below ``directory``.

    Raises:
        InputError: The command is missing, is of another version, or refuses the sweep.
        SuimonError: The kernel does not allow it; the message is the command's.
    """
    program = _command(on)
    with tempfile.TemporaryDirectory(prefix="suimon-") as folder:
        # Results have the file's name, so that it may not be a chance one.
        file = Path(folder) / "scenario.toml"
        file.write_text(text)
        for entry in Path(directory).iterdir():
            if entry.name in text and entry.name != file.name:
                (Path(folder) / entry.name).symlink_to(entry)
        _run([program, "sweep", str(file), KERNELS[on], *options])


def _run(words: list[str], **variables: str) -> None:
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise (InputError if done.returncode == 2 else SuimonError)(done.stderr.strip())


def _command(on: str) -> str:
    """The command of this version."""
    program = shutil.which("suimon")
    if program is None:
        raise InputError(f"on: {on!r} takes the command suimon, which is not on the PATH; `make install` puts it there")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    if _suimon.__version__ not in version:
        raise InputError(f"on: {program} is {' '.join(version[:2])}; accepted: {_suimon.__version__}, as this package")
    return program
