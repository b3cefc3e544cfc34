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


def test_a_checkpoint_that_was_found_spoilt_is_not_kept() -> None:
    checkpoints = (build_checkpoint(200, is_removed=True), build_checkpoint(300, is_rejected=True))

    found = judge(build_series(checkpoints=(*checkpoints, build_checkpoint(400))))

    assert "1 is kept, 1 removed and 1 set aside as spoilt." in found.answer
    counts = {each.name: each.value for each in found.evidence}
    assert (counts["written"], counts["kept"], counts["removed"]) == (3, 1, 1)
    assert counts["folders kept"] == "checkpoints/step-00000400"


def test_lines_that_are_lost_may_have_been_those_of_checkpoints() -> None:
    checkpoints = (build_checkpoint(200), build_checkpoint(400))
    whole, torn = (
        judge(build_series(checkpoints=checkpoints, led_damaged=lines, damaged=lines)) for lines in (0, 1)
    )
    elsewhere = judge(build_series(checkpoints=checkpoints, damaged=3))
    steps = build_steps(10, every=2)
    of_steps = judge(build_series(steps=steps, checkpoints=checkpoints, led_damaged=9, damaged=9))

    assert [each.confidence for each in (whole, elsewhere, of_steps)] == ["high"] * 3
    assert torn.confidence == "medium"
    assert "2 are kept, by the lines that are left of the log." in torn.answer
    assert "kept" not in {each.name for each in torn.evidence}
    assert judge(build_series(led_damaged=1)).confidence == "medium"


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


def test_an_imported_plan_that_comes_too_late_is_told_as_a_plan() -> None:
    found = judge(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("measured", "low")
    assert "it would have saved its first regular checkpoint after 299,998 steps" in found.answer
    assert "the log ends after 4,500" in found.answer
    assert len(found.evidence) == 4
    assert found.missing


def test_best_models_beside_an_imported_plan_are_counted_by_its_rule() -> None:
    series = replace(
        imported(**REFERENCE, best_checkpoints="best_models"),
        evaluations=build_evaluations([1000, 2000, 3000], [3.0, 2.5, 2.7]),
    )

    assert "best_models: 2 times by that rule, last at step 2,000 (loss 2.5000)" in judge(series).answer
    assert "no evaluation yet" in judge(replace(series, evaluations=())).answer


def test_a_checkpoint_that_an_imported_run_went_on_from_was_there() -> None:
    series = imported(**REFERENCE)
    start = replace(series.starts[0][1], resumed_from="/there/model.ckpt-400")

    found = judge(replace(series, starts=(*series.starts, (9.0, start))))

    assert "It went on from /there/model.ckpt-400, so that one was there." in found.answer
    assert "first regular checkpoint" not in found.answer


def test_checkpoints_that_an_imported_log_names_without_their_files_are_told() -> None:
    saved = tuple(
        build_checkpoint(step, folder=f"model.ckpt-{step}", files={}, bytes=0) for step in (1000, 2000)
    )

    found = judge(replace(imported(save_checkpoint_steps=1000), checkpoints=saved))

    assert "The log names 2 checkpoints, the last saved at step 2,000 as model.ckpt-2000." in found.answer
    assert "three files" in found.answer
    assert "names none" not in found.answer


def test_an_imported_plan_that_came_due_is_only_a_plan() -> None:
    found = judge(imported(save_checkpoint_steps=1000))

    assert found.confidence == "low"
    assert "4 by step 4,500; the log names none that was written" in found.answer
    assert judge(imported()).verdict == "cannot tell"
