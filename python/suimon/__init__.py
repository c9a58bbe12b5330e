"""Suimon keeps queues short and links full: compare senders, queues and paths over your link.

>>> import suimon as sm
>>> link = sm.Link("2Mbit", delay="90ms", buffer="96kB")
>>> result = sm.compare(link, senders=["reno", "fs-at"], seconds=10)
>>> result.flows["goodput_bps"].to_list()  # doctest: +SKIP
"""

from __future__ import annotations

from suimon._suimon import Column, Table, __version__
from suimon.comparison import compare
from suimon.errors import FileError, InputError, InternalError, SuimonError
from suimon.evaluation import paper
from suimon.links import Hsdpa, Link, Trace, Wifi
from suimon.registry import Algorithm, Parameter, algorithms, profiles
from suimon.result import PaperResult, Result
from suimon.scenario import Scenario, default_scenario

__all__ = [
    "Algorithm",
    "Column",
    "FileError",
    "Hsdpa",
    "InputError",
    "InternalError",
    "Link",
    "PaperResult",
    "Parameter",
    "Result",
    "Scenario",
    "SuimonError",
    "Table",
    "Trace",
    "Wifi",
    "__version__",
    "algorithms",
    "compare",
    "default_scenario",
    "paper",
    "profiles",
]
