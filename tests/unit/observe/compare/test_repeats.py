"""Runs of one recipe with several seeds."""

from dataclasses import replace

from tests.unit.observe.compare.run_story import build_run

from tandem.observe.compare.judgement import Judgement
from tandem.observe.compare.quality import judge_quality
from tandem.observe.compare.repeats import find_repeats, judge_recipes, seed_note
from tandem.observe.series.columns import Series


def judged(named: dict[str, Series]) -> dict[str, Judgement]:
    found = judge_recipes(find_repeats(named), tuple(judge_quality(named)))
    return {each.question.key: each for each in found}


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
    assert "not for their recipes" in seed_note(find_repeats(named))


def test_runs_of_one_recipe_show_what_a_seed_does() -> None:
    assert "what a seed does" in seed_note(find_repeats(seeds("a", 27.0, 27.3)))


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
