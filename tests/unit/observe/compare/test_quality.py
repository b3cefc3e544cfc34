"""Quality of models: what is told apart, what is noise, and what cannot be compared."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.observe.compare.run_story import AT, build_run, samples
from tests.unit.observe.report.told_run import card
from tests.unit.observe.verdicts.series_story import build_imported

from tandem.observe.compare.judgement import Judgement
from tandem.observe.compare.quality import Paired, judge_quality
from tandem.observe.series.columns import Series


def judged(*runs: Series, **given: Any) -> dict[str, Judgement]:
    named = dict(zip("abcdef", runs, strict=False))
    return {each.question.key: each for each in judge_quality(named, **given)}


def verdicts(found: dict[str, Judgement], start: str) -> set[tuple[str, str]]:
    return {(each.verdict, each.better) for key, each in found.items() if key.startswith(start)}


def test_what_is_far_better_is_better_at_the_best_at_the_end_and_at_all_equal_places() -> None:
    found = judged(build_run(), build_run(bleu=22.0, loss=2.4, seed=2))
    assert len(found) == 10
    assert verdicts(found, "bleu") == {("better", "a")}
    assert verdicts(found, "valid_loss") == {("better", "a")}


def test_a_difference_inside_the_intervals_is_noise() -> None:
    found = judged(build_run(bleu=27.0, loss=2.0), build_run(bleu=27.5, loss=2.005, seed=2))
    assert verdicts(found, "bleu") == {("inside noise", "")}
    assert verdicts(found, "valid_loss") == {("inside noise", "")}


def test_a_slower_run_is_worse_at_equal_time_and_not_at_equal_steps() -> None:
    found = judged(build_run(), build_run(step_s=2.5, seed=2))
    assert found["bleu_equal_steps"].verdict == "inside noise"
    assert found["bleu_equal_tokens"].verdict == "inside noise"
    assert found["bleu_equal_time"].better == "a"


def test_runs_of_different_lengths_are_compared_where_both_have_been() -> None:
    found = judged(build_run(), build_run(at=AT[:3], seed=2))
    assert "600" in found["bleu_equal_steps"].question.title
    assert found["bleu_equal_steps"].verdict == "inside noise"
    assert found["bleu_last"].better == "a"


def test_between_evaluations_the_interval_holds_the_bend_of_the_curve() -> None:
    other = build_run(seed=2)
    moved = replace(
        other, evaluations=tuple(replace(each, step=each.step - 100) for each in other.evaluations)
    )
    found = judged(build_run(), moved)["valid_loss_equal_steps"]
    held = {value.run: value for value in found.values}
    assert held["b"].step == 900
    assert held["a"].step is None
    assert held["a"].half > held["b"].half


def test_kept_translations_decide_where_they_can_be_compared() -> None:
    asked: list[tuple[str, int, str, int]] = []

    def pair(*pair: Any) -> Paired | str:
        asked.append(pair)
        return Paired(chance=0.001, sentences=3000)

    found = judged(build_run(bleu=27.2), build_run(seed=2), pairing=pair)
    assert found["bleu_best"].better == "a"
    assert "p = 0.001" in found["bleu_best"].why
    assert ("a", 1000, "b", 1000) in asked


def test_kept_translations_also_show_that_nothing_is_told_apart() -> None:
    apart = judged(
        build_run(bleu=30.0), build_run(seed=2), pairing=lambda *_: Paired(chance=0.2, sentences=100)
    )
    assert apart["bleu_best"].verdict == "inside noise"


def test_why_translations_were_not_compared_is_said_beside_the_intervals() -> None:
    found = judged(build_run(), build_run(seed=2), pairing=lambda *_: "They were not kept.")
    assert "They were not kept." in found["bleu_best"].why
    assert "intervals" in found["bleu_best"].why


OTHER_PIECES = replace(card(), vocabulary=replace(card().vocabulary, size=123))


@pytest.mark.parametrize(
    "other",
    [
        {"evaluated": {"bleu_signature": "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0"}},
        {"evaluated": {"sentences": 2999}},
        {"translations": samples("Something else.")},
        {"card": None, "translations": ()},
    ],
    ids=["signature", "sentences", "other text", "unknown text"],
)
def test_bleu_of_another_text_or_counted_otherwise_is_not_compared(other: dict[str, Any]) -> None:
    found = judged(build_run(bleu=40.0), build_run(seed=2, **other))
    assert verdicts(found, "bleu") == {("cannot tell", "")}
    assert found["bleu_best"].why


def test_another_version_of_sacrebleu_is_no_other_way_of_counting() -> None:
    signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.0"
    found = judged(build_run(bleu=40.0), build_run(seed=2, evaluated={"bleu_signature": signature}))
    assert found["bleu_best"].better == "a"


def test_losses_of_other_pieces_are_not_compared_but_bleu_is() -> None:
    found = judged(build_run(bleu=40.0, loss=1.0), build_run(seed=2, card=OTHER_PIECES))
    assert verdicts(found, "valid_loss") == {("cannot tell", "")}
    assert found["bleu_best"].better == "a"
    assert found["bleu_equal_tokens"].verdict == "cannot tell"


def test_losses_over_another_number_of_tokens_are_not_compared() -> None:
    found = judged(build_run(loss=1.0), build_run(seed=2, evaluated={"valid_tokens": 70_000}))
    assert found["valid_loss_best"].verdict == "cannot tell"


def test_a_loss_of_another_tool_is_not_compared() -> None:
    found = judged(build_run(loss=1.0), build_run(seed=2, imported=build_imported(times="wall")))
    assert found["valid_loss_best"].verdict == "cannot tell"
    assert "openseq2seq" in found["valid_loss_best"].why


def test_bleu_without_intervals_or_translations_tells_nothing() -> None:
    found = judged(build_run(bleu=40.0, half=float("nan")), build_run(seed=2, half=float("nan")))
    assert verdicts(found, "bleu") == {("cannot tell", "")}


def test_without_intervals_it_is_still_said_why_translations_were_not_compared() -> None:
    runs = build_run(half=float("nan")), build_run(seed=2, half=float("nan"))
    found = judged(*runs, pairing=lambda *_: "They were not kept.")
    assert found["bleu_best"].why == "No interval was logged, so noise is not known. They were not kept."


def broken(run: Series, since: int) -> Series:
    """With a loss that is no number from a step on."""
    return replace(
        run,
        evaluations=tuple(
            replace(each, valid_loss=float("nan")) if each.step >= since else each for each in run.evaluations
        ),
    )


def test_a_loss_that_is_no_number_any_more_is_worse_at_the_end_and_not_shown_as_it_was() -> None:
    found = judged(build_run(loss=2.0), broken(build_run(loss=1.5, seed=2), 800))
    assert found["valid_loss_best"].better == "b"
    for key in ("valid_loss_last", "valid_loss_equal_steps", "valid_loss_equal_tokens"):
        assert (found[key].better, found[key].worse) == ("a", ("b",))
        assert "valid loss of b is no finite number" in found[key].why
    assert [value.step for value in found["valid_loss_last"].values] == [1000, 1000]


def test_a_loss_that_never_was_a_number_is_no_trouble() -> None:
    found = judged(build_run(), broken(build_run(seed=2), 0))
    assert found["valid_loss_last"].better == "a"
    both = judged(broken(build_run(), 0), broken(build_run(seed=2), 0))
    assert verdicts(both, "valid_loss") == {("cannot tell", "")}


def test_between_a_number_and_none_nothing_is_known() -> None:
    run = broken(build_run(seed=2), 800)
    moved = replace(run, evaluations=tuple(replace(each, step=each.step + 50) for each in run.evaluations))
    found = judged(build_run(at=AT[:4]), moved)["valid_loss_equal_steps"]
    assert "800" in found.question.title
    assert (found.verdict, [value.run for value in found.values]) == ("cannot tell", ["a"])


def test_runs_without_evaluations_are_no_trouble() -> None:
    assert verdicts(judged(build_run(), build_run(evaluations=())), "") == {("cannot tell", "")}


def test_runs_that_were_never_at_the_same_place_are_not_compared_there() -> None:
    late = build_run(seed=2)
    late = replace(late, evaluations=tuple(replace(each, step=each.step + 5000) for each in late.evaluations))
    assert judged(build_run(), late)["bleu_equal_steps"].verdict == "cannot tell"


def test_a_run_that_is_left_out_does_not_choose_the_place() -> None:
    other = build_run(seed=3, evaluated={"sentences": 2999, "valid_tokens": 70_000})
    late = replace(
        other, evaluations=tuple(replace(each, step=each.step + 5000) for each in other.evaluations)
    )
    found = judged(build_run(), build_run(bleu=22.0, loss=2.4, seed=2), late)
    for key in ("bleu_equal_steps", "valid_loss_equal_steps"):
        assert (found[key].verdict, found[key].better) == ("better", "a")
        assert "1,000" in found[key].question.title
        assert "c left out: " in found[key].why
    short = replace(other, evaluations=other.evaluations[:1])
    assert "1,000" in judged(build_run(), build_run(seed=2), short)["bleu_equal_steps"].question.title


def test_a_run_with_other_tokens_does_not_keep_the_others_from_equal_tokens() -> None:
    found = judged(build_run(bleu=40.0), build_run(seed=2), build_run(seed=3, card=OTHER_PIECES))
    assert (found["bleu_equal_tokens"].verdict, found["bleu_equal_tokens"].better) == ("better", "a")
    assert found["bleu_equal_tokens"].left_out == ("c",)
    assert found["bleu_equal_steps"].left_out == ()


def test_runs_that_are_judged_and_were_never_at_the_same_place_are_named() -> None:
    late = build_run(seed=2)
    late = replace(late, evaluations=tuple(replace(each, step=each.step + 5000) for each in late.evaluations))
    other = build_run(seed=3, bleu=9.0, evaluated={"sentences": 2999})
    assert "a, b have no steps in common" in judged(build_run(), late, other)["bleu_equal_steps"].answer


def test_the_loss_of_a_sure_model_is_less_sure_than_it_is_low() -> None:
    found = judged(build_run(loss=0.2), build_run(loss=0.2, seed=2))["valid_loss_last"].values[0]
    assert found.half > 1.96 * 2 * 0.2 / 80_000**0.5
    high = judged(build_run(loss=4.0), build_run(loss=4.0, seed=2))["valid_loss_last"].values[0]
    assert high.half == pytest.approx(1.96 * 4.0 / 80_000**0.5, rel=1e-4)
