"""What `make install` puts in place, and a command that is built in part."""

import os
import subprocess
from pathlib import Path

import check_walk
import pytest
from check_text import ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COMMAND = TARGET / "debug/suimon"


def install(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "DESTDIR": str(folder), "PREFIX": "/opt/suimon"}
    command = [str(ROOT / "scripts/install.sh"), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_what_is_installed_works_and_goes_without_a_trace(tmp_path: Path) -> None:
    prefix = tmp_path / "opt/suimon"
    # Somebody else's.
    (prefix / "share/man/man1").mkdir(parents=True)
    (prefix / "share/man/man1/other.1").write_text("")
    before = names(tmp_path)
    install(tmp_path, str(COMMAND))
    # Again, as for a new version: nothing is doubled or forgotten.
    install(tmp_path, str(COMMAND))
    there = names(prefix)
    for name in [
        "bin/suimon",
        "share/man/man1/suimon-shell.1",
        "share/bash-completion/completions/suimon",
        "share/fish/vendor_completions.d/suimon.fish",
        "share/zsh/site-functions/_suimon",
        "lib/suimon/bpf/fs_at.bpf.o",
        "share/suimon/papers/fs-at/claims.toml",
    ]:
        assert name in there
    unit = (prefix / "lib/systemd/system/suimon-cc@.service").read_text()
    assert "ExecStart=/opt/suimon/bin/suimon cc load" in unit
    # It finds the papers that came with it, from a folder without any.
    paper = [str(prefix / "bin/suimon"), "paper", "fs-at", "--experiment", "single-flow", "--no-files"]
    subprocess.run(paper, cwd=tmp_path, check=True, capture_output=True)
    install(tmp_path, "--remove")
    assert names(tmp_path) == before


def test_nothing_to_remove_is_said(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        install(tmp_path, "--remove")
    assert "nothing to remove: no " in error.value.stderr


@pytest.fixture(scope="module")
def part() -> Path:
    """The command without its optional parts, as the walk through a guide has it."""
    return check_walk.build()[0]


@pytest.mark.parametrize(
    ("words", "feature"),
    [
        (["bond", "client", "--server", "host:1"], "bond"),
        (["cc", "load", "fs-at"], "bpf"),
        (["queue", "load", "rtt-aqm"], "bpf"),
        (["estimate", "--pcap", "my.pcap"], "capture"),
        (["shell", "--link", "1Mbit"], "live"),
        (["run", "scenarios/live.toml", "--live"], "live"),
        (["paper", "fs-at", "--kernel"], "bpf"),
        (["sweep", "my.toml"], "parquet"),
    ],
)
def test_what_a_build_lacks_it_names(part: Path, words: list[str], feature: str) -> None:
    done = subprocess.run([str(part), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f'(cargo feature "{feature}"); accepted: a build with its default features' in done.stderr


def test_the_version_names_the_commit_and_what_is_left_out(part: Path) -> None:
    def version(command: Path) -> str:
        return subprocess.run([str(command), "--version"], capture_output=True, text=True, check=True).stdout

    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout[:9]
    assert version(COMMAND).removesuffix("\n").removesuffix(".dirty") == f"suimon 0.1.0+{commit}"
    assert version(part).endswith(" without bond, bpf, capture, gateway, live, measure, parquet, view\n")


def test_a_part_simulates_as_the_whole_does(part: Path, tmp_path: Path) -> None:
    for command, folder in [(COMMAND, "whole"), (part, "part")]:
        run = [str(command), "run", "scenarios/demo-wired.toml", "--out", str(tmp_path / folder)]
        subprocess.run(run, cwd=ROOT, check=True, capture_output=True)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").glob("*.csv")}
    assert {path.name: path.read_bytes() for path in (tmp_path / "part").glob("*.csv")} == whole
    assert len(whole) >= 4
    assert (tmp_path / "part/report.html").exists()
    assert not list((tmp_path / "part").glob("*.parquet"))
