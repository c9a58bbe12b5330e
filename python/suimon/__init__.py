"""Suimon keeps queues short and links full: compare senders, queues and paths over your link.

>>> import suimon as sm
>>> link = sm.Link("2Mbit", delay="90ms", buffer="96kB")
>>> result = sm.compare(link, senders=["reno", "fs-at"], seconds=10)
>>> result.flows["goodput_bps"].to_list()  # doctest: +SKIP
"""

from __future__ import annotations

from suimon._suimon import (
    Ack,
    Column,
    Congestion,
    Delivery,
    Limits,
    Packet,
    Path,
    SendState,
    Table,
    __version__,
)
from suimon.comparison import compare, compare_paths
from suimon.errors import FileError, InputError, InternalError, SuimonError
from suimon.evaluation import paper
from suimon.links import Hsdpa, Link, Trace, Wifi
from suimon.own import CongestionControl, PathScheduler, QueueDiscipline, register
from suimon.registry import Algorithm, Parameter, algorithms, profiles
from suimon.result import PaperResult, Result
from suimon.scenario import Scenario, default_scenario
from suimon.sweeps import Parts, Sweep, sweep

__all__ = [
    "Ack",
    "Algorithm",
    "Column",
    "Congestion",
    "CongestionControl",
    "Delivery",
    "FileError",
    "Hsdpa",
    "InputError",
    "InternalError",
    "Limits",
    "Link",
    "Packet",
    "PaperResult",
    "Parameter",
    "Parts",
    "Path",
    "PathScheduler",
    "QueueDiscipline",
    "Result",
    "Scenario",
    "SendState",
    "SuimonError",
    "Sweep",
    "Table",
    "Trace",
    "Wifi",
    "__version__",
    "algorithms",
    "compare",
    "compare_paths",
    "default_scenario",
    "paper",
    "profiles",
    "register",
    "sweep",
]
