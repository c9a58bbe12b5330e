"""The simulators: how each is found, prepared and run."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from measure import HERE, ROOT, WORK, BenchError, run, version
from scenarios import NS2, NS3, SUIMON, Case

# Long enough for no packet, short enough to be no run.
NO_TIME = 1e-6
NS3_LIBRARIES = ["core", "network", "internet", "point-to-point", "traffic-control", "applications"]
NS3_LIBRARIES += ["nix-vector-routing"]


@dataclass(frozen=True)
class Counts:
    """What was simulated."""

    packets: int
    """Data packets that bottlenecks have sent; where there are several, all of them."""
    hops: int
    """Packets that links have sent: data and acknowledgements."""


class Simulator(ABC):
    """A simulator as the benchmark sees it."""

    name: str
    package: str | None = None

    def __init__(self) -> None:
        self._counts: dict[tuple[str, float], Counts] = {}

    @abstractmethod
    def prepare(self) -> str | None:
        """Makes it ready; gives the reason where it cannot be."""

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def command(self, case: Case, seconds: float) -> list[str]:
        """Simulates a case, and counts as little as can be."""

    def startup(self, case: Case) -> list[str]:
        """Sets a case up and ends."""
        return self.command(case, NO_TIME)

    @abstractmethod
    def count(self, case: Case, seconds: float) -> Counts: ...

    def counts(self, case: Case, seconds: float) -> Counts:
        """Of a run of its own: counting costs time, and all runs of a case take the same course."""
        key = case.name, seconds
        if key not in self._counts:
            self._counts[key] = self.count(case, seconds)
        return self._counts[key]


class Suimon(Simulator):
    name = SUIMON

    def __init__(self, binary: Path) -> None:
        super().__init__()
        self.binary = binary

    def prepare(self) -> str | None:
        return None if self.binary.exists() else f"not built: {self.binary}"

    def version(self) -> str:
        return version([str(self.binary), "--version"], r"suimon (\S+)")

    def command(self, case: Case, seconds: float) -> list[str]:
        return self.command_with(case.name, case.toml(), seconds)

    def startup(self, case: Case) -> list[str]:
        """A run of no length; flows start at once, since none may start after the end."""
        return [*self.command(case, NO_TIME), "--set", "flow.*.start=0s"]

    def command_with(self, name: str, toml: str, seconds: float) -> list[str]:
        return [*self._run(_write(f"{name}.toml", toml), seconds), "--no-files"]

    def count(self, case: Case, seconds: float) -> Counts:
        folder = WORK / "count"
        file = _write(f"{case.name}-count.toml", case.toml(report_all=True))
        run([*self._run(file, seconds), "--out", str(folder), "--force"], self.name)
        bottlenecks = {link.name for link in case.links if link.is_bottleneck}
        with (folder / "queues.csv").open() as table:
            sent = {row["link"]: int(row["packets"]) for row in csv.DictReader(table)}
        return Counts(sum(sent[name] for name in bottlenecks), sum(sent.values()))

    def _run(self, file: Path, seconds: float) -> list[str]:
        return [str(self.binary), "run", str(file), "--json", "--set", f"duration={round(seconds * 1e6)}us"]


class Ns2(Simulator):
    name = NS2
    package = "ns2"

    def prepare(self) -> str | None:
        return None if shutil.which("ns") else "not installed"

    def version(self) -> str:
        return version(["dpkg-query", "-W", "ns2"], r"ns2\s+(\S+)")

    def command(self, case: Case, seconds: float) -> list[str]:
        return ["ns", str(HERE / "ns2" / "network.tcl"), str(_plain(case)), f"{seconds:.6f}"]

    def count(self, case: Case, seconds: float) -> Counts:
        return _counts(run([*self.command(case, seconds), "count"], self.name))


class Ns3(Simulator):
    name = NS3
    package = "libns3-dev"

    def prepare(self) -> str | None:
        if not Path("/usr/include/ns3").exists():
            return "not installed"
        source, program = HERE / "ns3" / "network.cc", self._program()
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            WORK.mkdir(parents=True, exist_ok=True)
            libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
            flags = ["-std=c++17", "-O3", "-DNDEBUG"]
            try:
                run(["c++", *flags, "-o", str(program), str(source), *libraries], "c++")
            except (BenchError, OSError) as error:
                return f"does not compile: {error}"
        return None

    def version(self) -> str:
        return version(["dpkg-query", "-W", "libns3-dev"], r"libns3-dev\S*\s+(\S+)")

    def command(self, case: Case, seconds: float) -> list[str]:
        return [str(self._program()), str(_plain(case)), f"{seconds:.6f}"]

    def count(self, case: Case, seconds: float) -> Counts:
        return _counts(run([*self.command(case, seconds), "count"], self.name))

    def _program(self) -> Path:
        return WORK / "ns3-network"


def built(profile: str = "dist") -> Path:
    """The program as a profile of Cargo.toml builds it; what is handed to others where none is named."""
    folder = "debug" if profile == "dev" else profile
    return Path(os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))) / folder / "suimon"


def install(simulators: list[Simulator]) -> None:
    """Installs what is missing, where that can be done without asking."""
    packages = [one.package for one in simulators if one.package and one.prepare() == "not installed"]
    if not packages or not shutil.which("apt-get"):
        return
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    print(f"bench: installing {' '.join(packages)}", flush=True)
    for arguments in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *packages]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            [*as_root, "apt-get", *arguments], env=environment, stdout=subprocess.DEVNULL, check=False
        )


def _write(name: str, text: str) -> Path:
    WORK.mkdir(parents=True, exist_ok=True)
    file = WORK / name
    file.write_text(text)
    return file


def _plain(case: Case) -> Path:
    return _write(f"{case.name}.txt", case.plain())


def _counts(output: str) -> Counts:
    # Not line by line: ns-2 prints through two buffers, and one may interrupt the other's line.
    found = [re.search(rf"{name} (\d+)\n", output) for name in ("packets", "hops")]
    packets, hops = (int(one[1]) for one in found if one)
    return Counts(packets, hops)
