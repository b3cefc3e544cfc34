import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.unit.observe.imports.board import NAME, write_points
from tests.unit.observe.imports.printing import of
from tests.unit.observe.story import Teller, started

from tandem.errors import TandemError
from tandem.observe.imports import Observed, import_tensorboard
from tandem.observe.sinks.tensorboard import TensorBoardSink
from tandem.runlog.event import (
    LossMeasured,
    RunImported,
    RunStarted,
    ScoreImported,
    StepFinished,
    TrainingStarted,
)
from tandem.runlog.reader import read_records


def test_points_of_one_step_are_one_step_and_times_give_its_length(tmp_path: Path) -> None:
    write_points(
        tmp_path / "logs",
        [
            (100.0, 0, {"loss": 9.0, "lr": 0.1, "grad_norm": 2.0}),
            (250.0, 100, {"loss": 8.0, "lr": 0.2, "grad_norm": 1.0, "other": 1.0}),
        ],
    )
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run", observed=Observed(link_bits_per_s=1e9))
    first, second = of(tmp_path / "run", StepFinished)
    assert math.isnan(first.duration_s)
    assert (second.step, second.loss, second.gradient_norm, second.duration_s) == (100, 8.0, 1.0, 1.5)
    assert second.learning_rate == pytest.approx(0.2)
    assert imported.unused == ("other",)
    (head,) = of(tmp_path / "run", RunImported)
    assert (head.tool, head.times, head.step_kind) == ("tensorboard", "wall", "mean")
    assert head.facts == {"observed_link_bits_per_s": 1e9, "unused_tags": ["other"]}
    assert [record.time_ns / 1e9 for record in read_records(tmp_path / "run")][-1] == 250.0


def test_the_tools_own_rate_of_steps_goes_before_the_clock(tmp_path: Path) -> None:
    points = [(100.0, 0, {"loss": 9.0}), (250.0, 100, {"loss": 8.0, "global_step/sec": 0.8})]
    write_points(tmp_path / "logs", [(at, step, values) for at, step, values in points])
    import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert of(tmp_path / "run", StepFinished)[1].duration_s == pytest.approx(1.25)


def test_a_mean_with_an_evaluation_in_it_is_no_time_of_a_step(tmp_path: Path) -> None:
    write_points(
        tmp_path / "logs",
        [
            (100.0, 0, {"loss": 9.0}),
            (250.0, 100, {"loss": 8.0}),
            (300.0, 130, {"eval_loss": 7.5, "Eval_BLEU_Score": 0.25}),
            (450.0, 200, {"loss": 7.0, "global_step/sec": 0.5}),
            (600.0, 300, {"loss": 6.0}),
        ],
    )
    import_tensorboard(tmp_path / "logs", tmp_path / "run")
    known = [not math.isnan(event.duration_s) for event in of(tmp_path / "run", StepFinished)]
    assert known == [False, True, False, True]
    assert [(event.step, event.set, event.loss) for event in of(tmp_path / "run", LossMeasured)] == [
        (130, "valid", 7.5)
    ]
    (score,) = of(tmp_path / "run", ScoreImported)
    assert (score.name, score.value) == ("Eval_BLEU_Score", 0.25)
    assert "no BLEU of translations" in score.meaning


def test_a_curve_that_goes_back_is_a_restart(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(float(step), step, {"loss": 9.0}) for step in (1, 101, 201)])
    write_points(
        tmp_path / "logs", [(1000.0 + step, step, {"loss": 8.0}) for step in (101, 201, 301)], name=NAME + "2"
    )
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert imported.restarts == 1
    assert [start.step for start in of(tmp_path / "run", TrainingStarted)] == [0, 100]
    # What lies between the two starts is no step.
    assert math.isnan(of(tmp_path / "run", StepFinished)[3].duration_s)


def test_ranks_that_write_side_by_side_are_one_run_without_restarts(tmp_path: Path) -> None:
    for rank in range(3):
        write_points(
            tmp_path / "logs",
            [(10.0 * step + rank, step, {"loss": 9.0 - rank, "lr": 0.1}) for step in range(1, 6)],
            name=f"{NAME}{rank}",
        )
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert (imported.steps, imported.restarts) == (5, 0)
    assert [event.loss for event in of(tmp_path / "run", StepFinished)] == [7.0] * 5


def test_ranks_that_wrote_one_point_each_are_no_restart(tmp_path: Path) -> None:
    for rank in range(2):
        write_points(
            tmp_path / "logs",
            [(1.0 + rank, 0, {"other": 1.0}), (100.0 + rank, 50, {"loss": 9.0})],
            name=f"{NAME}{rank}",
        )
    assert import_tensorboard(tmp_path / "logs", tmp_path / "run").restarts == 0


def test_a_restart_of_several_ranks_is_one(tmp_path: Path) -> None:
    for begin_s, steps in ((100.0, (1, 101, 201)), (1000.0, (101, 201, 301))):
        for rank in range(2):
            write_points(
                tmp_path / "logs",
                [(begin_s + step + rank, step, {"loss": 9.0, "lr": 0.1}) for step in steps],
                name=f"{NAME}{begin_s}.{rank}",
            )
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert (imported.steps, imported.restarts) == (6, 1)


def test_a_step_that_is_written_twice_counts_once_as_it_was_last(tmp_path: Path) -> None:
    points = [(10.0, 1, 9.0), (20.0, 2, 8.0), (20.5, 2, 7.5), (30.0, 3, 7.0)]
    write_points(tmp_path / "logs", [(at, step, {"loss": loss}) for at, step, loss in points])
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert (imported.steps, imported.restarts) == (3, 0)
    assert [event.loss for event in of(tmp_path / "run", StepFinished)] == [9.0, 7.5, 7.0]


def test_a_file_that_goes_back_is_a_restart(tmp_path: Path) -> None:
    points = enumerate((1, 101, 201, 101, 201))
    write_points(tmp_path / "logs", [(10.0 * at, step, {"loss": 9.0, "lr": 0.1}) for at, step in points])
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert (imported.steps, imported.restarts) == (5, 1)


def test_a_run_that_was_stopped_and_went_on_has_no_step_as_long_as_the_pause(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(float(step), step, {"loss": 9.0}) for step in (1, 101, 201)])
    write_points(
        tmp_path / "logs", [(9000.0 + step, step, {"loss": 8.0}) for step in (301, 401)], name=NAME + "2"
    )
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert imported.restarts == 1
    lengths = [event.duration_s for event in of(tmp_path / "run", StepFinished)]
    assert [length for length in lengths if not math.isnan(length)] == [1.0] * 3


@pytest.mark.parametrize(
    ("tag", "is_told"), [("eval/sacrebleu", True), ("Eval_BLEU_Score", False), ("chrF", False)]
)
def test_bleu_is_missing_only_where_no_curve_may_be_it(tmp_path: Path, tag: str, *, is_told: bool) -> None:
    write_points(tmp_path / "logs", [(10.0, 1, {"loss": 9.0, tag: 0.3})])
    imported = import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert ("BLEU of translations" not in imported.untold) is is_told


def test_names_that_are_no_utf_8_can_be_written_in_a_report(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(10.0, 1, {"loss": 9.0})], name=NAME + "\udcff")
    import_tensorboard(tmp_path / "logs", tmp_path / "run\udcfe")
    told = [*of(tmp_path / "run\udcfe", RunImported), *of(tmp_path / "run\udcfe", RunStarted)]
    assert json.dumps([asdict(event) for event in told], ensure_ascii=False).encode()


def test_several_writers_of_one_run_are_put_together(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(10.0, 1, {"loss": 9.0}), (20.0, 2, {"loss": 8.0})])
    write_points(tmp_path / "logs/rates", [(10.5, 1, {"lr": 0.5}), (20.5, 2, {"lr": 0.25})])
    write_points(tmp_path / "logs/eval", [(21.0, 2, {"loss": 8.5})])
    import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert [(event.loss, event.learning_rate) for event in of(tmp_path / "run", StepFinished)] == [
        (9.0, 0.5),
        (8.0, 0.25),
    ]
    assert [event.loss for event in of(tmp_path / "run", LossMeasured)] == [8.5]


def test_a_run_of_tandem_comes_back_from_its_own_curves(tmp_path: Path) -> None:
    teller = Teller()
    told = [teller.tell(started()), *(teller.step(number) for number in range(1, 6)), *teller.evaluation(5)]
    with TensorBoardSink(tmp_path / "board") as sink:
        for record in told:
            sink.apply(record)
    import_tensorboard(tmp_path / "board", tmp_path / "run")
    steps = [record.event for record in told if isinstance(record.event, StepFinished)]
    for step, back in zip(steps, of(tmp_path / "run", StepFinished), strict=True):
        assert back.step == step.step
        assert back.target_tokens == step.target_tokens
        assert back.loss == pytest.approx(step.loss, rel=1e-6)
        assert back.duration_s == pytest.approx(step.duration_s, rel=1e-6)
        assert set(back.phases) == set(step.phases)
    assert {event.set for event in of(tmp_path / "run", LossMeasured)} == {"valid", "probe"}
    assert of(tmp_path / "run", RunImported)[0].step_kind == "each"


def test_curves_that_nobody_knows_are_refused_with_their_names(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(1.0, 1, {"accuracy": 0.5})])
    with pytest.raises(TandemError, match=r"has no curve that Tandem knows \(it has accuracy\)"):
        import_tensorboard(tmp_path / "logs", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_run_is_never_written_over(tmp_path: Path) -> None:
    write_points(tmp_path / "logs", [(1.0, 1, {"loss": 0.5})])
    (tmp_path / "run").mkdir()
    with pytest.raises(TandemError, match="exists already"):
        import_tensorboard(tmp_path / "logs", tmp_path / "run")
