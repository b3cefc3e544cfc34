"""Runs of one recipe with several seeds."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.report.told_run import card
from tests.unit.observe.verdicts.series_story import build_process, build_start, build_steps

from tandem.observe.compare.judgement import Judgement
from tandem.observe.compare.quality import judge_quality
from tandem.observe.compare.repeats import find_repeats, judge_recipes, seed_note
from tandem.observe.series.columns import Series


def judged(named: dict[str, Series]) -> dict[str, Judgement]:
    found = judge_recipes(named, find_repeats(named), tuple(judge_quality(named)))
    return {each.question.key: each for each in found}


def note(named: dict[str, Series]) -> str:
    return seed_note(find_repeats(named), named)


def stopped(run: Series, steps: int) -> Series:
    """The run as it was when it was killed."""
    return replace(
        run,
        steps=build_steps(steps),
        evaluations=tuple(each for each in run.evaluations if each.step <= steps),
        ended="",
        is_closed=False,
    )


def seeds(label: str, *bleus: float, width: int = 512) -> dict[str, Series]:
    return {
        f"{label}{number}": build_run(bleu=bleu, seed=number, width=width)
        for number, bleu in enumerate(bleus, start=1)
    }


def test_recipes_that_differ_in_seed_name_and_places_are_one() -> None:
    one, other = build_run(seed=1), build_run(seed=2)
    other = replace(
        other, recipe={**other.recipe, "data": {"folder": "elsewhere"}, "telemetry": {"report": False}}
    )
    assert [group.runs for group in find_repeats({"a": one, "b": other})] == [("a", "b")]


def test_the_order_of_keys_is_nothing() -> None:
    run = build_run()
    other = replace(run, recipe=dict(reversed(list(run.recipe.items()))))
    assert len(find_repeats({"a": run, "b": other})) == 1


def test_any_other_key_makes_another_recipe() -> None:
    assert len(find_repeats({"a": build_run(), "b": build_run(width=1024)})) == 2


def test_a_seed_that_was_trained_twice_counts_once() -> None:
    groups = find_repeats({"a": build_run(), "again": build_run(), "b": build_run(seed=2)})
    assert [(group.runs, group.same_seed) for group in groups] == [(("a", "b"), ("again",))]


def test_runs_without_recipes_are_not_taken_for_one_another() -> None:
    bare = replace(build_run(), recipe={})
    assert len(find_repeats({"a": bare, "b": bare})) == 2


def test_one_run_of_each_recipe_says_nothing_of_recipes() -> None:
    named = {"a": build_run(bleu=40.0), "b": build_run(width=1024)}
    assert judged(named) == {}
    assert "not for their recipes" in note(named)


def test_runs_of_one_recipe_show_what_a_seed_does() -> None:
    assert "what a seed does" in note(seeds("a", 27.0, 27.3))


def test_a_recipe_that_is_better_than_its_seeds_spread_is_better() -> None:
    found = judged({**seeds("a", 27.0, 27.2, 26.9), **seeds("b", 30.1, 30.0, 29.8, width=1024)})
    assert found["recipe_bleu_best"].better == "the recipe of b1"


def test_a_difference_within_the_spread_of_seeds_is_noise_however_far_two_runs_are_apart() -> None:
    found = judged({**seeds("a", 24.0, 28.0, 26.0), **seeds("b", 29.0, 25.0, width=1024)})
    assert found["recipe_bleu_best"].verdict == "inside noise"


def test_two_seeds_alone_must_differ_by_very_much() -> None:
    found = judged({**seeds("a", 27.0, 27.5), **seeds("b", 30.0, width=1024)})
    assert found["recipe_bleu_best"].verdict == "inside noise"


def test_seeds_that_meet_by_luck_do_not_make_every_difference_sure() -> None:
    found = judged({**seeds("a", 27.0, 27.0), **seeds("b", 27.4, width=1024)})
    assert found["recipe_bleu_best"].verdict == "inside noise"


def test_what_cannot_be_compared_between_runs_is_not_between_recipes() -> None:
    other = {
        name: replace(run, translations=(), card=None) for name, run in seeds("b", 40.0, width=99).items()
    }
    assert "recipe_bleu_best" not in judged({**seeds("a", 27.0, 27.1), **other})


def test_a_recipe_is_not_worse_because_its_runs_were_killed_early() -> None:
    whole = seeds("a", 27.0, 27.2, 26.9)
    short = {name: stopped(run, 600) for name, run in seeds("b", 27.1, 27.0, 26.8, width=1024).items()}
    found = judged({**whole, **short})
    assert found["recipe_bleu_best"].verdict == "cannot tell"
    assert "b1, b2, b3 have not ended" in found["recipe_bleu_best"].answer
    assert found["recipe_bleu_equal_steps"].verdict == "inside noise"
    assert "step 600" in found["recipe_bleu_equal_steps"].question.title


def test_runs_that_ended_at_other_steps_are_judged_at_equal_steps_alone() -> None:
    short = {
        name: replace(stopped(run, 600), ended="reached 600 steps")
        for name, run in seeds("b", 27.1, 27.0, width=1024).items()
    }
    found = judged({**seeds("a", 27.0, 27.2), **short})
    assert "600 to 1,000 steps" in found["recipe_bleu_best"].answer
    assert found["recipe_bleu_equal_steps"].values


def test_a_recipe_one_of_whose_seeds_broke_has_no_mean() -> None:
    runs = {**seeds("a", 27.0, 27.2), **seeds("b", 27.1, 27.0, width=1024)}
    broken = replace(runs["b2"].evaluations[-1], valid_loss=float("nan"))
    runs["b2"] = replace(runs["b2"], evaluations=(*runs["b2"].evaluations[:-1], broken))
    found = judged(runs)
    assert found["recipe_valid_loss_equal_steps"].verdict == "cannot tell"
    assert "b2" in found["recipe_valid_loss_equal_steps"].answer
    assert found["recipe_bleu_equal_steps"].values


def test_one_recipe_on_other_data_is_not_one_recipe() -> None:
    told = card()
    corpus = replace(told.corpora[0], lines=told.corpora[0].lines + 1)
    other = build_run(card=replace(told, corpora=(corpus, *told.corpora[1:])))
    assert len(find_repeats({"a": build_run(), "b": other})) == 2


def test_rounding_is_named_where_data_versions_and_ranks_are_alike() -> None:
    assert "what machines' rounding does" in note({"a": build_run(), "b": build_run()})


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"processes": (replace(build_process(), torch="9.9"),)}, "but differ in PyTorch"),
        ({"starts": ((5.0, replace(build_start(), precision="fp8")),)}, "but differ in precision"),
        ({"starts": ((5.0, replace(build_start(), ranks=7)),)}, "but differ in ranks"),
        ({"card": replace(card(), tokens=replace(card().tokens, target=1))}, "but differ in target tokens"),
    ],
    ids=["version", "precision", "ranks", "pieces"],
)
def test_rounding_is_not_named_where_something_else_differs(other: dict[str, Any], told: str) -> None:
    found = note({"a": build_run(), "b": build_run(**other)})
    assert told in found
    assert "not only from" in found


def test_data_that_nobody_knows_is_not_called_the_same() -> None:
    bare = replace(build_run(), card=None)
    assert "is not in their logs" in note({"a": bare, "b": bare})


def test_seeds_on_other_versions_are_not_only_seeds() -> None:
    other = build_run(seed=2, processes=(replace(build_process(), torch="9.9"),))
    assert "PyTorch" in note({"a": build_run(), "b": other})
