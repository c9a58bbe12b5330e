"""Published evaluations, re-run and judged claim by claim."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from suimon import _suimon
from suimon._check import optional_text, text
from suimon.result import PaperResult


def paper(
    name: str,
    *,
    experiment: str | None = None,
    papers: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> PaperResult:
    """Re-runs a paper's evaluation and judges it, as ``suimon paper`` does.

    Args:
        name: The paper: ``"fs-at"``, ``"dpd-qt"``, ``"rtt-aqm"``, ``"buffer-path"``.
        experiment: Only this experiment.
        papers: Where papers' folders are. Default: those that come with the package.
        progress: Show a bar on standard error after two seconds, where that is a terminal.

    Raises:
        InputError: There is no such paper or experiment; the message lists what there is.
    """
    name = text("name", name, "the name of a paper")
    only = optional_text("experiment", experiment, "the name of an experiment")
    command = f"suimon paper {name}" + (f" --experiment {only}" if only else "")
    with _folder(papers) as folder:
        findings = _suimon.paper(name, experiment=only, places=[folder], command=command, progress=progress)
    return PaperResult(findings)


@contextmanager
def _folder(papers: str | os.PathLike[str] | None) -> Iterator[str]:
    """The folder of the papers; those that come with the package are written out for as long as they are read."""
    if papers is not None:
        yield os.fspath(papers)
        return
    with TemporaryDirectory(prefix="suimon-papers-") as folder:
        for name, content in _suimon.papers():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        yield folder
