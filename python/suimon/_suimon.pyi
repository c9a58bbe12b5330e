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
    def to_dicts(self) -> list[dict[str, str | int | float | None]]:
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
    rtt_s: float
    @staticmethod
    def of_line(line: str) -> LinkSpec: ...
    @staticmethod
    def of_parts(
        *,
        argument: str,
        capacity: str | None = None,
        trace: str | None = None,
        delay: str | None = None,
        rtt: str | None = None,
        buffer: str | None = None,
        loss: str | None = None,
        jitter: str | None = None,
        reorder: str | None = None,
        outages: str | None = None,
    ) -> LinkSpec: ...

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

def compare(
    link: LinkSpec,
    *,
    senders: list[str],
    queues: list[str],
    flows: str,
    mixed: bool,
    duration: str | None,
    warmup: str,
    size: str | None,
    window: str | None,
    profile: str,
    seed: int,
    seeds: int,
    command: str,
    progress: bool,
) -> Findings: ...
def paper(name: str, *, experiment: str | None, places: list[str], command: str, progress: bool) -> Findings: ...
def papers() -> list[tuple[str, str]]: ...
def algorithms() -> list[tuple[str, str, str, str, str, list[tuple[str, str, str, str]]]]: ...
def profiles() -> list[str]: ...
def default_scenario() -> str: ...
