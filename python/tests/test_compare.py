"""Comparisons, links and scenarios give what the command gives."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import suimon as sm

SENDERS = ["reno", "fs-at+cubic:mode=fit"]


def numbers(result: sm.Result, *columns: str) -> list[list[object]]:
    """Columns that a run's labels do not change."""
    return [result.flows[column].to_list() for column in columns]


def test_a_link_of_keywords_is_the_link_of_the_line() -> None:
    link = sm.Link("2 Mbit", delay="90ms", buffer="96 kB", loss="0.1%", jitter="1ms", reorder="1%/10ms")
    assert link.line == "2 Mbit 180ms 96kB loss=0.1% jitter=1ms reorder=1%/10ms"
    assert link.rtt_s == pytest.approx(0.18)
    one = sm.compare(link, SENDERS, seconds=2)
    other = sm.compare(link.line, SENDERS, seconds=2)
    assert one.to_json(series=True).replace(one.command, "") == other.to_json(series=True).replace(other.command, "")


def test_changes_that_help_are_a_table_and_the_same_as_in_json() -> None:
    result = sm.compare("20/5Mbit 60ms", seconds=5)
    advice = result.advice.to_dicts()
    told = json.loads(result.to_json())["advice"]
    assert len(advice) >= 3
    assert [row["change"] for row in advice] == [row["change"] for row in told]
    assert [str(row["how"]).split("\n") for row in advice] == [row["how"] for row in told]
    first = advice[0]
    assert float(first["waiting_ms"]) < float(first["waiting_before_ms"])
    assert len(sm.compare("2Mbit 40ms", "reno", seconds=1).advice) == 0


def test_what_is_left_out_is_what_the_command_takes() -> None:
    assert sm.compare("2Mbit 40ms", seconds=1).flows["algorithm"].to_list() == [
        "reno",
        "cubic",
        "vegas",
        "drs",
        "fs-at",
    ]
    queues = sm.compare("2Mbit 40ms", queues=["droptail", "red"], seconds=1)
    assert queues.queues["discipline"].to_list() == ["droptail", "red"]
    assert queues.command == "suimon compare --link '2Mbit 40ms' --queue droptail,red --duration 1s"


@pytest.mark.parametrize(
    "link",
    [
        sm.Link("2Mbit", delay="20ms", buffer="30 packets", loss="0.5%"),
        sm.Link("2 Mbit 40ms 45 kB jitter=1ms reorder=1%/10ms"),
        sm.Link("2Mbit", rtt="40ms", outages="1s..1.5s"),
        sm.Hsdpa("PA3", "10dB", delay="40ms", cqi_delay="6ms"),
        sm.Wifi("802.11b", "11Mbit", cw_min=15),
        sm.Link("hsdpa VA30 0dB harq_transmissions=2 100ms 96kB"),
    ],
    ids=str,
)
def test_a_scenario_over_a_link_is_the_comparison_over_it(link: sm.Link) -> None:
    compared = sm.compare(link, "cubic", seconds=3)
    scenario = sm.Scenario.over(link, "cubic", seconds=3).run()
    assert compared.flows["packets_sent"][0] > 100
    columns = ("delivered_bytes", "packets_sent", "packets_lost", "rtt_mean_ms")
    assert numbers(compared, *columns) == numbers(scenario, *columns)


def test_a_synthetic_cell_is_no_link_of_a_scenario() -> None:
    with pytest.raises(sm.InputError, match="suimon trace generate --like lte-driving"):
        sm.Scenario.over("lte-driving 50ms", "cubic")


def test_a_trace_may_have_any_path(trace: Path) -> None:
    result = sm.compare(sm.Trace(trace, delay="10ms", buffer="50 packets"), "reno", seconds=5)
    assert 3.5e6 < result.runs["goodput_bps"][0] < 4e6
    scenario = sm.Scenario.over(sm.Trace(trace, delay="10ms", buffer="50 packets"), "reno", seconds=5).run()
    assert scenario.runs["goodput_bps"].to_list() == result.runs["goodput_bps"].to_list()


def test_a_scenario_of_objects_is_the_file(tmp_path: Path) -> None:
    scenario = sm.Scenario(
        duration="2s",
        link=[{"name": "l", "between": ["a", "b"], "rate": "1Mbit", "delay": "5ms"}],
        flow=[{"name": "f", "from": "a", "to": "b", "cc": "reno", "stack": {"delayed_ack": False}}],
        matrix=[{"set": "flow.f.cc", "values": ["reno", {"name": "vegas", "alpha": 3}]}],
    )
    assert scenario.count() == 2
    path = tmp_path / "scenario.toml"
    path.write_text(scenario.toml)
    read = sm.Scenario.read(path)
    assert read.run().flows.to_dicts() == scenario.run().flows.to_dicts()
    assert read.run().flows["algorithm"].to_list() == ["reno", "vegas:alpha=3"]
    changed = read.with_({"duration": "1s", "link.l.rate": "2Mbit"})
    assert changed.run().runs["duration_s"].to_list() == [1.0, 1.0]
    assert "--set link.l.rate=2Mbit" in changed.run().command
    assert sm.Scenario.parse(sm.default_scenario()).count() == 1


def test_page_files_and_text_are_the_commands(tmp_path: Path, trace: Path, command: Path) -> None:
    results = [
        sm.compare(sm.Link("2Mbit", delay="20ms", buffer="30 packets"), SENDERS, seconds=3, seeds=2),
        sm.compare("5Mbit 20ms loss=0.1%", ["reno", "cubic"], mixed=True, flows=2, seconds=3, warmup=0.5, seed=7),
        sm.compare("5Mbit 20ms", "reno", queues=["droptail", "red:max_p=0.02"], seconds=3, window="1MB"),
        sm.compare(sm.Trace(trace, delay="10ms", buffer="50 packets"), "cubic", size="100kB"),
        sm.compare_paths(["4Mbit 20ms", "2Mbit 40ms 20packets"], ["ecf", "look-ahead"], senders="reno", seconds=3),
    ]
    for nth, result in enumerate(results):
        folder = tmp_path / str(nth)
        folder.mkdir()
        words = [str(command), *shlex.split(result.command)[1:]]
        told = subprocess.run(words, cwd=folder, env={"COLUMNS": "100"}, capture_output=True, text=True, check=True)
        page = Path(result.write(folder / "python"))
        result.report(folder / "page.html")
        (theirs,) = (folder / "suimon-out").iterdir()
        assert (folder / "page.html").read_bytes() == (theirs / page.name).read_bytes(), result.command
        # All but the last line, which says where the page is.
        # The command alone hints at its option --seeds.
        text = re.sub(r"\n\nNote: Each row is one run,[^.]*\.", "", told.stdout.rpartition("\nReport: ")[0])
        assert str(result) == text
        # The command also notes what it compared, by which it knows a folder of its own.
        names = sorted(path.name for path in theirs.iterdir() if path.name != "command.txt")
        assert names == sorted(path.name for path in page.parent.iterdir())
        for name in names:
            assert (theirs / name).read_bytes() == (page.parent / name).read_bytes(), name


def test_the_same_call_gives_the_same_bytes(result: sm.Result) -> None:
    again = sm.compare(
        sm.Link("2Mbit", delay="20ms", buffer="30 packets"), ["reno", "cubic", "fs-at"], seconds=5, seeds=2
    )
    assert again.to_json(series=True) == result.to_json(series=True)


def test_a_paper_is_judged() -> None:
    paper = sm.paper("fs-at", experiment="single-flow")
    assert paper.verdicts.columns == ["experiment", "claim", "paper", "tolerance", "measured", "verdict"]
    assert len(paper.verdicts) > 0


def test_the_registry_is_there() -> None:
    by_name = {algorithm.name: algorithm for algorithm in sm.algorithms()}
    assert by_name["fs-at"].role == "congestion control"
    assert by_name["fs-at"].colour.startswith("#")
    assert "mode" in [parameter.name for parameter in by_name["fs-at"].parameters]
    assert {each.name for each in sm.algorithms("path scheduler")} >= {"lowest-rtt", "ecf"}
    assert "linux-6" in sm.profiles()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own answer to Ctrl-C, which a shell's background jobs and many CI systems ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_a_run() -> None:
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sm.compare("10Gbit 1ms", "cubic", seconds=1000, progress=False)
    assert time.monotonic() - begun < 5


def test_other_threads_go_on_while_one_simulates() -> None:
    seen = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal seen
        while not stop.is_set():
            seen += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    sm.compare("1Gbit 10ms", "cubic", seconds=10)
    stop.set()
    other.join()
    assert seen > 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.compare(3), "link: 3 is no text; accepted: a Link"),  # type: ignore[arg-type]
        (lambda: sm.compare("2Mbit"), "delay: missing; accepted: one way"),
        (lambda: sm.compare("2Mbit 40ms", "fast"), 'senders: unknown congestion control "fast"; accepted: reno'),
        (lambda: sm.compare("2Mbit 40ms", []), "senders: is empty; accepted: names"),
        (
            lambda: sm.compare("2Mbit 40ms", queues="blue"),
            'queues: unknown queue discipline "blue"; accepted: drop',
        ),
        (lambda: sm.compare("2Mbit 40ms", seconds=-1), "seconds: -1 is out of range; accepted: seconds from zero on"),
        (lambda: sm.compare("2Mbit 40ms", seconds=1e300), "seconds: 1e.300 is out of range"),
        (lambda: sm.compare("2Mbit 40ms", warmup=True), "warmup: True is no time; accepted: seconds, or text"),
        (lambda: sm.compare("2Mbit 40ms", seeds=0), "seeds: 0 is out of range; accepted: 1 or more"),
        (lambda: sm.compare("2Mbit 40ms", seed=-1), "seed: -1 is out of range; accepted: 0 or more"),
        (lambda: sm.compare("2Mbit 40ms", size="10"), 'size: "10" has no unit; accepted: B, kB'),
        (lambda: sm.compare("2Mbit 40ms", profile="bsd"), 'profile: unknown profile "bsd"; accepted: linux-6'),
        (lambda: sm.compare_paths(["1Mbit 1ms"], "none"), 'schedulers: unknown path scheduler "none"; accepted:'),
        (lambda: sm.Link("2Mbit", delay="1ms", rtt="2ms"), "rtt: goes without delay"),
        (lambda: sm.Trace("none.down", delay="1ms"), "none.down: cannot read it"),
        (lambda: sm.paper("none"), 'name: unknown paper "none"; accepted: buffer-path'),
    ],
)
def test_bad_input_is_refused_by_name_with_what_is_accepted(call: Callable[[], object], message: str) -> None:
    with pytest.raises(sm.InputError, match=message):
        call()


def test_a_kernel_in_virtual_time_gives_nearly_the_simulators_numbers(
    command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    if subprocess.run(["suimon", "lab", "list"], capture_output=True, text=True, check=False).stdout.strip() == "":
        pytest.skip("no kernel is set up; `suimon lab setup` brings one")

    def goodput(on: str) -> float:
        result = sm.compare("2Mbit 40ms 20packets", "reno", seconds=3, on=on)
        assert result.command.endswith("--lab") == (on == "lab")
        return float(result.runs["goodput_bps"].to_list()[0])

    assert goodput("lab") == pytest.approx(goodput("simulator"), rel=0.1)


def test_a_kernel_is_refused_where_it_cannot_run_the_comparison(
    command: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(sm.InputError, match="on: 'moon' is no place to run; accepted: simulator, lab, live"):
        sm.compare("2Mbit 40ms", "reno", on="moon")

    class Mine(sm.CongestionControl):
        """Never grows."""

    with pytest.raises(sm.InputError, match="senders: Mine is a class in Python; accepted with on='lab': names"):
        sm.compare("2Mbit 40ms", Mine, on="lab")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sm.InputError, match="takes the command suimon, which is not on the PATH"):
        sm.compare("2Mbit 40ms", "reno", on="lab")
    other = tmp_path / "suimon"
    other.write_text("#!/bin/sh\necho suimon 0.0.1\n")
    other.chmod(0o755)
    with pytest.raises(sm.InputError, match=r"is suimon 0\.0\.1; accepted: "):
        sm.compare("2Mbit 40ms", "reno", on="lab")
