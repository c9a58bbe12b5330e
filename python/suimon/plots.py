"""Pictures of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suimon.result import Result


class Plots:
    """Pictures of one result."""

    def __init__(self, result: Result) -> None:
        self._result = result
