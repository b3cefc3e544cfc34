"""Seconds of training are those in which training went on."""

from pathlib import Path

import pytest
from benchmarks.gpu.curve import Point, at_marks, first_below, read_curve
from tests.unit.benchmarks.gpu.story import started, step, write_log

from tandem.runlog.event import EvaluationFinished, EvaluationStarted, Event, LossMeasured


def evaluation(number: int, *, begun_s: float, ended_s: float, loss: float) -> list[tuple[float, Event]]:
    measured = {
        name: LossMeasured(step=number, set=name, loss=held, target_tokens=10, pairs=2, duration_s=0.1)
        for name, held in (("valid", loss), ("probe", 0.5))
    }
    finished = EvaluationFinished(step=number, duration_s=0.1, is_best_loss=True, is_best_bleu=False)
    return [
        (begun_s, EvaluationStarted(step=number)),
        (begun_s + 0.1, measured["valid"]),
        (begun_s + 0.2, measured["probe"]),
        (ended_s, finished),
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    happened = [
        (100.0, started()),
        (130.0, step(1, tokens=50, seconds=30.0)),
        (131.0, step(2, tokens=60, seconds=1.0)),
        *evaluation(2, begun_s=131.5, ended_s=141.5, loss=3.0),
        (143.0, step(3, tokens=70, seconds=1.0)),
        (144.0, step(4, tokens=80, seconds=1.0)),
        *evaluation(4, begun_s=144.5, ended_s=154.5, loss=2.0),
    ]
    return write_log(tmp_path, happened)


def test_evaluations_and_start_up_are_no_training(run: Path) -> None:
    curve = read_curve(run)
    assert [(point.step, point.trained_s) for point in curve.points] == [(2, 2.5), (4, 5.5)]
    assert (curve.trained_s, curve.evaluated_s, curve.start_up_s) == (5.5, 20.0, 29.0)


def test_what_a_checkpoint_blocks_counts_on_the_wall_and_not_by_the_steps(run: Path) -> None:
    curve = read_curve(run)
    assert (curve.trained_s, curve.steps_s) == (5.5, 4.0)


def test_the_loss_is_of_the_whole_valid_set(run: Path) -> None:
    curve = read_curve(run)
    assert [point.nll for point in curve.points] == [30.0, 20.0]
    assert (curve.steps, curve.target_tokens) == (4, 260)


def points() -> list[Point]:
    held = (10.0, 9.0), (20.0, 7.0), (30.0, 7.5)
    return [Point(step=1, trained_s=second, nll=nll, target_tokens=1) for second, nll in held]


def test_a_mark_takes_the_last_evaluation_that_was_not_later() -> None:
    found = at_marks(points(), [5.0, 20.0, 29.9])
    assert {mark: point.trained_s for mark, point in found.items()} == {20.0: 20.0, 29.9: 20.0}


def test_a_goal_is_met_at_the_first_loss_as_low_as_it() -> None:
    met = first_below(points(), nll=7.5)
    assert met is not None
    assert met.trained_s == 20.0
    assert first_below(points(), nll=6.9) is None
