"""A window holds what lies in a stretch and one more of each on both sides, and copies nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.observe.series.same import check_same
from tests.unit.observe.series.slow import build_process, build_start, build_step
from tests.unit.observe.series.test_live import lines_of
from tests.unit.observe.series.test_sampled import DESCRIBED, sample

from tandem.observe.series.columns import Series
from tandem.observe.series.fold import read_series
from tandem.observe.series.window import window
from tandem.runlog.event import EvaluationStarted, Event, ExchangeProbed
from tandem.runlog.layout import RunLayout


def tell(rank: int) -> list[tuple[float, Event]]:
    """A hundred steps, one a second from second 2 on; each tenth is probed, and the leader evaluates there."""
    told: list[tuple[float, Event]] = [(0.0, build_process(2)), (1.0, build_start(0, 2))]
    for step in range(1, 101):
        told.append((1.0 + step, build_step(step)))
        if step % 10 == 0:
            probe = ExchangeProbed(step=step, synchronised_s=0.2, unsynchronised_s=0.1, exchange_s=0.1)
            told.append((1.0 + step, probe))
        if step % 10 == 0 and rank == 0:
            told.append((1.25 + step, EvaluationStarted(step=step)))
    return told


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    run = tmp_path_factory.mktemp("run")
    RunLayout(run).log.mkdir()
    for rank in range(2):
        RunLayout(run).rank_log(rank).write_bytes(lines_of(*tell(rank), rank=rank))
    sampled = [(float(second), sample(second / 200)) for second in range(1, 104)]
    RunLayout(run).samples_log("a").write_bytes(lines_of((0.0, DESCRIBED), *sampled, host="a"))
    return read_series(run)


def test_a_stretch_of_steps_has_one_more_on_both_sides(series: Series) -> None:
    cut = window(series, steps=(41, 60))
    assert cut.steps.step.tolist() == list(range(40, 62))
    assert cut.ranks.duration_s.shape == cut.ranks.phases["data"].shape == (2, 22)
    np.testing.assert_array_equal(cut.ranks.sent_bytes, series.ranks.sent_bytes[:, 39:61])
    assert cut.evaluations == series.evaluations[3:7]
    assert sorted(set(cut.probes.step.tolist())) == [40, 50, 60, 70]
    assert len(cut.probes.exchange_s) == 8
    # Steps 40 and 61 end in seconds 41 and 62.
    samples = cut.samples["a"]
    assert samples.time_s.tolist() == [float(second) for second in range(40, 64)]
    assert samples.gpu_power_w.shape == samples.sent_bytes_per_s.shape == (2, 24)
    assert samples.described == DESCRIBED


def test_a_stretch_of_time_is_that_of_its_steps(series: Series) -> None:
    cut = window(series, times=(42.0, 61.0))
    assert cut.steps.step.tolist() == list(range(40, 62))
    assert [each.step for each in cut.evaluations] == [40, 50, 60]
    assert sorted(set(cut.probes.step.tolist())) == [30, 40, 50, 60, 70]
    assert cut.samples["a"].time_s.tolist() == [float(second) for second in range(41, 63)]


def test_all_else_stays(series: Series) -> None:
    cut = window(series, steps=(3, 4))
    whole = replace(
        cut,
        steps=series.steps,
        ranks=series.ranks,
        probes=series.probes,
        evaluations=series.evaluations,
        samples=series.samples,
    )
    check_same(whole, series)


def test_nothing_is_copied(series: Series) -> None:
    cut = window(series, times=(20.0, 30.0))
    assert np.shares_memory(cut.steps.loss, series.steps.loss)
    assert np.shares_memory(cut.ranks.phases["data"], series.ranks.phases["data"])
    assert np.shares_memory(cut.samples["a"].gpu_power_w, series.samples["a"].gpu_power_w)


@pytest.mark.parametrize(
    "cut",
    [
        lambda series: window(series, steps=(-9, 9_999)),
        lambda series: window(series, times=(-9.0, 9_999.0)),
    ],
)
def test_a_stretch_beyond_the_run_is_all_of_it(series: Series, cut: Callable[[Series], Series]) -> None:
    check_same(cut(series), series)


def test_a_stretch_after_the_end_shows_the_last_points(series: Series) -> None:
    cut = window(series, steps=(500, 600))
    assert cut.steps.step.tolist() == [100]
    assert [each.step for each in cut.evaluations] == [100]


def test_the_edges_may_come_in_either_order(series: Series) -> None:
    check_same(window(series, steps=(60, 41)), window(series, steps=(41, 60)))


def test_a_run_without_steps_keeps_its_samples(tmp_path: Path) -> None:
    RunLayout(tmp_path).log.mkdir()
    lines = lines_of((0.0, DESCRIBED), (1.0, sample()), (2.0, sample()), host="a")
    RunLayout(tmp_path).samples_log("a").write_bytes(lines)
    series = read_series(tmp_path)
    check_same(window(series, steps=(1, 2)), series)
    assert window(series, times=(0.0, 0.5)).samples["a"].time_s.tolist() == [1.0]


def test_a_stretch_is_in_steps_or_in_seconds(series: Series) -> None:
    with pytest.raises(ValueError, match="in steps or in seconds"):
        window(series)
    with pytest.raises(ValueError, match="in steps or in seconds"):
        window(series, steps=(1, 2), times=(1.0, 2.0))
