"""Pictures show what the tables say, in the colours of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import suimon as sm

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def matrix() -> sm.Result:
    axes = {"link.rate": ["1Mbit", "2Mbit"], "link.delay": ["5ms", "50ms"]}
    scenario = sm.Scenario.over("2Mbit 20ms 30packets", ["reno", "fs-at"], seconds=3)
    return sm.sweep(scenario, axes, seeds=2).collect()


def test_lines_have_the_samples_and_the_registrys_colours(result: sm.Result) -> None:
    axes: Any = result.plot.backlog().axes[0]
    assert len(axes.lines) == 6
    assert axes.get_ylabel() == "Backlog [packets]"
    first = [row["backlog_packets"] for row in result.queue_series.to_dicts() if row["run"] == 1]
    assert list(axes.lines[0].get_ydata()) == pytest.approx(first)
    colours = {algorithm.name: algorithm.colour for algorithm in sm.algorithms()}
    assert [line.get_color() for line in axes.lines[::2]] == [colours[name] for name in ("reno", "cubic", "fs-at")]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["reno", "cubic", "fs-at"]
    # Without colours, dashes tell them apart.
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in axes.lines}) == 3


def test_every_picture_is_drawn_and_saved_the_same_twice(result: sm.Result, matrix: sm.Result, tmp_path: Path) -> None:
    def drawn() -> list[bytes]:
        figures: list[Any] = [
            result.plot.delay(),
            result.plot.goodput(),
            result.plot.cwnd(),
            result.plot.tradeoff(),
            result.plot.cdf(),
            result.plot.cdf("delay_ms", "queue_series") if "delay_ms" in result.queue_series.columns else None,
            matrix.plot.convergence(),
            matrix.plot.fairness("rate", "delay"),
            matrix.plot.tradeoff(),
        ]
        path = tmp_path / "picture.svg"
        pictures = []
        for figure in figures:
            for _ in range(2):
                figure.savefig(path)
                pictures.append(path.read_bytes())
            assert pictures[-1] == pictures[-2]
        return pictures

    once = drawn()
    assert once == drawn()
    assert all(picture.startswith(b"<?xml") for picture in once)


def test_a_notebook_shows_what_is_saved_as_svg(result: sm.Result, tmp_path: Path) -> None:
    figure: Any = result.plot.backlog()
    figure.savefig(tmp_path / "picture.svg")
    assert figure._repr_svg_() == (tmp_path / "picture.svg").read_text()


def test_shares_of_a_run_add_up_to_one(matrix: sm.Result) -> None:
    axes: Any = matrix.plot.convergence().axes[0]
    shares = [line.get_ydata() for line in axes.lines[:2]]
    assert shares[0] + shares[1] == pytest.approx([1.0] * len(shares[0]))


def test_a_heat_map_has_a_cell_for_each_pair_of_values(matrix: sm.Result) -> None:
    axes: Any = matrix.plot.fairness("rate", "delay").axes[0]
    assert axes.images[0].get_array().shape == (2, 2)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1Mbit", "2Mbit"]
    runs = matrix.runs.to_dicts()
    expected = sum(row["jain_index"] for row in runs[:2]) / 2
    assert axes.images[0].get_array()[0, 0] == pytest.approx(expected)


def test_what_is_not_there_is_refused_with_what_is(result: sm.Result) -> None:
    with pytest.raises(sm.InputError, match="nothing sampled is called 'backlog'; accepted: .*backlog_packets"):
        result.plot.series("backlog")
    with pytest.raises(sm.InputError, match="x: no column of runs is called 'rate'"):
        result.plot.fairness("rate", "cc")
