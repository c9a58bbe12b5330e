"""The native half: what the package is built on, and nothing for users but the tables."""

from typing import Any, final

__version__: str

@final
class Table:
    """A table with named columns. Data frames take it over without a copy, by the Arrow PyCapsule interface."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def columns(self) -> list[str]:
        """Names of the columns; they end in the unit."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Column: ...
    def to_dicts(self) -> list[dict[str, Any]]:
        """Its rows, each a mapping from column to value."""
    def to_polars(self) -> Any:
        """A polars data frame; takes polars."""
    def to_pandas(self) -> Any:
        """A pandas data frame; takes pandas and pyarrow."""
    def to_arrow(self) -> Any:
        """A pyarrow table; takes pyarrow."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Column:
    """A column of a table: a sequence of numbers or texts, ``None`` where a row has none."""

    @property
    def name(self) -> str:
        """Its name, with the unit."""
    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> Any: ...
    def to_list(self) -> list[Any]:
        """All values."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class LinkSpec:
    line: str
    fields: dict[str, str]
    rtt_s: float
    @staticmethod
    def of_words(argument: str, words: str, delay: str | None, rtt: str | None, keys: dict[str, Any]) -> LinkSpec: ...
    @staticmethod
    def of_trace(path: str, delay: str | None, rtt: str | None, keys: dict[str, Any]) -> LinkSpec: ...
    def tables(self) -> str: ...

@final
class Findings:
    @property
    def broken(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def table(self, name: str) -> Table: ...
    def verdicts(self) -> Table: ...
    def advice(self) -> Table: ...
    def html(self) -> str: ...
    def report(self, path: str) -> None: ...
    def write(self, path: str) -> str: ...
    def json(self, series: bool) -> str: ...
    def text(self, width: int) -> str: ...

@final
class Document:
    @staticmethod
    def read(path: str) -> Document: ...
    @staticmethod
    def parse(text: str, source: str, directory: str) -> Document: ...
    @property
    def text(self) -> str: ...
    def with_value(self, key: str, value: str) -> Document: ...
    def count(self) -> int: ...
    def run(self, command: str, progress: bool) -> Findings: ...

@final
class Limits:
    """What a sender must obey. Sizes take any number from zero on; below one segment they are one segment."""

    #: Congestion window.
    cwnd_bytes: float
    #: Slow-start threshold; larger than any window where there is none.
    ssthresh_bytes: float
    #: A further limit on what is in flight; larger than any where it is not used.
    space_bytes: float
    #: Rate at which payload may leave; ``None`` leaves it to the stack.
    pacing_bps: float | None
    @property
    def in_slow_start(self) -> bool:
        """``cwnd`` is below ``ssthresh`` (RFC 5681 §3.1)."""

@final
class Ack:
    """An acknowledgement, as the sender sees it once its scoreboard is up to date."""

    @property
    def now_s(self) -> float:
        """When it arrived, since the run began."""
    @property
    def newly_acked_bytes(self) -> int:
        """How far it moved ``snd_una``."""
    @property
    def delivered_bytes(self) -> int:
        """What it confirms for the first time, cumulatively or selectively."""
    @property
    def marked_bytes(self) -> int:
        """What of that bore a congestion mark, where ``marks_by_share`` asks for it."""
    @property
    def rtt_s(self) -> float | None:
        """Round-trip time of a segment that it acknowledges; ``None`` where that would be ambiguous."""
    @property
    def snd_una(self) -> int:
        """Oldest unacknowledged byte, from the start of the connection."""
    @property
    def snd_nxt(self) -> int:
        """Next new byte to be sent."""
    @property
    def flight_size_bytes(self) -> int:
        """In flight now."""
    @property
    def prior_flight_size_bytes(self) -> int:
        """In flight before."""
    @property
    def snd_wnd_bytes(self) -> int:
        """What the peer's window and the send buffer let be outstanding."""
    @property
    def mss_bytes(self) -> int:
        """Maximum segment size."""
    @property
    def cwnd_limited(self) -> bool:
        """The window held the sender back."""
    @property
    def app_limited(self) -> bool:
        """The application held the sender back."""
    @property
    def in_recovery(self) -> bool:
        """In fast recovery or after a timeout: no time to grow a window."""
    @property
    def slow_start_credit_bytes(self) -> int:
        """What it adds to ``cwnd`` in slow start, as the stack counts."""
    @property
    def avoidance_credit_bytes(self) -> int:
        """What it counts for in congestion avoidance, as the stack counts."""

@final
class Congestion:
    """A congestion event."""

    @property
    def now_s(self) -> float:
        """When it was noticed, since the run began."""
    @property
    def kind(self) -> str:
        """``"loss"``, ``"ecn"`` or ``"timeout"``."""
    @property
    def flight_size_bytes(self) -> int:
        """In flight just before."""
    @property
    def used_window_bytes(self) -> int:
        """What Reno halves: what is in flight (RFC 5681 §3.1), or the congestion window on a stack of Linux."""
    @property
    def snd_nxt(self) -> int:
        """Next new byte to be sent."""
    @property
    def mss_bytes(self) -> int:
        """Maximum segment size."""

@final
class Delivery:
    """A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation §3.1.3)."""

    @property
    def total_bytes(self) -> int:
        """Payload confirmed since the connection began."""
    @property
    def total_when_sent_bytes(self) -> int:
        """The same when the newest segment delivered now was sent."""
    @property
    def rate_bps(self) -> float | None:
        """The rate; ``None`` where the sample is too short to tell."""
    @property
    def app_limited(self) -> bool:
        """The application had nothing to send when that segment was sent."""
    @property
    def rtt_s(self) -> float | None:
        """Round-trip time of that segment."""
    @property
    def next_departure_s(self) -> float:
        """When pacing lets the next segment out; not after the ACK where it need not wait."""

@final
class Packet:
    """A packet that waits."""

    @property
    def arrived_s(self) -> float:
        """When it came, since the run began."""
    @property
    def size_bytes(self) -> int:
        """Its size on the link, headers included."""
    @property
    def flow(self) -> int:
        """Number of its flow."""
    @property
    def ecn_capable(self) -> bool:
        """It understands congestion marks."""
    def drop(self) -> None:
        """Drops it. `dequeue` must not give it any more."""
    def mark(self) -> bool:
        """Marks it where it understands marks; tells whether it does."""

@final
class Path:
    """One of several paths, as a program sees it by its socket."""

    @property
    def index(self) -> int:
        """Its place among the paths."""
    @property
    def usable(self) -> bool:
        """Its connection is established and makes progress."""
    @property
    def has_room(self) -> bool:
        """It is usable, and its send buffer takes the next chunk."""
    @property
    def ready(self) -> bool:
        """It has room, and nothing waits unsent in it."""
    @property
    def can_copy(self) -> bool:
        """Some data is under way on other paths and was never on this one."""
    @property
    def silent_s(self) -> float:
        """How long nothing was acknowledged though something is under way."""
    @property
    def buffered_bytes(self) -> int:
        """In its send buffer: unsent, or sent and not acknowledged."""
    @property
    def unsent_bytes(self) -> int:
        """Of these, never sent."""
    @property
    def send_buffer_bytes(self) -> int:
        """Size of its send buffer."""
    @property
    def cwnd_bytes(self) -> int:
        """Congestion window."""
    @property
    def mss_bytes(self) -> int:
        """Maximum segment size."""
    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time."""
    @property
    def rttvar_s(self) -> float | None:
        """Its mean deviation."""
    @property
    def rtt_min_s(self) -> float | None:
        """Least round-trip time of late."""
    @property
    def rate_bps(self) -> float | None:
        """How fast it carries data: as measured, else a window in each round trip."""

@final
class SendState:
    """What the sender of a stream knows when it has to decide."""

    @property
    def paths(self) -> list[Path]:
        """Every path, in a fixed order."""
    @property
    def chunk_bytes(self) -> int:
        """Size of the next placement."""
    @property
    def unassigned_bytes(self) -> int:
        """Produced, and given to no path."""
    @property
    def window_bytes(self) -> int:
        """How far behind the first unassigned byte the receiver's reorder buffer ends."""
    @property
    def buffer_bytes(self) -> int:
        """Size of that buffer."""
    @property
    def next_fits(self) -> bool:
        """The next data exists and fits the receiver's reorder buffer."""

def add_algorithm(
    role: str, cls: type, name: str, summary: str, colour: str, parameters: list[tuple[str, object, str]]
) -> None: ...
def compare(request: str, progress: bool) -> Findings: ...
def command(request: str) -> str: ...
def measured(request: str, command: str, results: bytes) -> Findings: ...
def keywords(over_paths: bool) -> list[tuple[str, str, list[str], str]]: ...
def paper(name: str, *, experiment: str | None, places: list[str], command: str, progress: bool) -> Findings: ...
def papers() -> list[tuple[str, str]]: ...
def algorithms() -> list[tuple[str, str, str, str, str, list[tuple[str, str, str, str]]]]: ...
def profiles() -> list[str]: ...
def default_scenario() -> str: ...
@final
class Sweep:
    def __new__(cls, document: Document, settings: list[str], series: bool) -> Sweep: ...
    @staticmethod
    def checked(document: Document, manifest: str) -> Sweep: ...
    @property
    def name(self) -> str: ...
    @property
    def runs(self) -> int: ...
    @property
    def parts(self) -> int: ...
    @property
    def manifest(self) -> str: ...
    def difference(self, found: str) -> str | None: ...
    def open(self, path: str, restart: bool) -> Folder: ...
    def make(self, folder: Folder, jobs: int | None, progress: bool) -> None: ...
    def make_parts(self, path: str, parts: list[int], writer: str) -> int: ...

@final
class Folder:
    def missing(self, sweep: Sweep) -> list[int]: ...
