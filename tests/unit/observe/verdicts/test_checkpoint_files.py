from dataclasses import replace

from tests.unit.observe.verdicts.exchange_story import REFERENCE, imported
from tests.unit.observe.verdicts.series_story import (
    build_checkpoint,
    build_evaluations,
    build_recipe,
    build_series,
    build_steps,
)

from tandem.observe.series.columns import Marked
from tandem.observe.verdicts.checkpoint_files import judge
from tandem.runlog.event import CheckpointFailed, CheckpointRejected, Event


def _mark(event: Event) -> Marked:
    return Marked(time_s=9.0, rank=0, host=None, event=event)


def test_every_file_is_named_with_what_it_holds() -> None:
    found = judge(build_series(checkpoints=(build_checkpoint(),)))

    assert (found.verdict, found.confidence) == ("measured", "high")
    meanings = {each.name: each.definition for each in found.evidence}
    assert "weights" in meanings["model.safetensors"]
    assert "moments" in meanings["optimizer.safetensors"]
    assert "subword" in meanings["subword.model"]


def test_a_running_average_changes_what_the_files_hold() -> None:
    series = build_series(checkpoints=(build_checkpoint(),), recipe=build_recipe(ema_decay=0.999))

    found = judge(series)

    assert "average" in next(each.definition for each in found.evidence if each.name == "model.safetensors")


def test_written_kept_and_removed_are_counted() -> None:
    checkpoints = tuple(build_checkpoint(step, is_removed=step < 800) for step in (200, 400, 600, 800, 1000))

    found = judge(build_series(checkpoints=checkpoints))

    assert "5 were written" in found.answer
    assert "2 are kept and 3 removed" in found.answer


def test_failures_are_said() -> None:
    failed = _mark(CheckpointFailed(step=600, reason="No space left on device"))
    spoilt = _mark(CheckpointRejected(folder="checkpoints/step-00000400", reason="too short"))

    some = judge(build_series(checkpoints=(build_checkpoint(200),), marks=(failed, spoilt)))
    none = judge(build_series(marks=(failed,)))

    assert "No space left on device" in some.answer
    assert any(each.name == "rejected" for each in some.evidence)
    assert none.answer.startswith("None is there")
    assert none.advice


def test_a_run_without_any_says_so() -> None:
    assert "No checkpoint was written" in judge(build_series()).answer
    assert judge(build_series(steps=build_steps(0))).verdict == "cannot tell"


def test_an_imported_plan_that_comes_too_late_saved_nothing() -> None:
    found = judge(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("measured", "medium")
    assert found.answer.startswith("Nothing was saved: the first checkpoint was due after 299,998 steps")
    assert len(found.evidence) == 4


def test_best_models_beside_an_imported_plan_may_be_there() -> None:
    series = replace(
        imported(**REFERENCE, best_checkpoints="best_models"),
        evaluations=build_evaluations([1000, 2000, 3000], [3.0, 2.5, 2.7]),
    )

    found = judge(series)

    assert found.answer.startswith("By its plan nothing was saved")
    assert "2 evaluations had the lowest loss so far" in found.answer
    assert found.missing


def test_an_imported_plan_that_came_due_is_only_a_plan() -> None:
    found = judge(imported(save_checkpoint_steps=1000))

    assert found.confidence == "low"
    assert "so 4 by step 4,500" in found.answer
    assert judge(imported()).verdict == "cannot tell"
