"""Whether numbers of two runs mean the same."""

from dataclasses import replace

from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.report.told_run import card

from tandem.observe.compare.comparable import bleu_objection, loss_objection, token_objection
from tandem.runlog.card import SideCounts


def test_runs_on_the_same_text_in_the_same_pieces_are_comparable() -> None:
    pair = (build_run(), build_run(seed=2))
    assert bleu_objection(*pair) == loss_objection(*pair) == token_objection(*pair) == ""


def test_samples_alone_tell_the_same_text_where_there_is_no_card() -> None:
    assert bleu_objection(build_run(card=None), build_run(card=None)) == ""


def test_a_valid_text_of_another_length_is_another_text() -> None:
    held = tuple(replace(each, words=SideCounts(source=1, target=1)) for each in card().held_out)
    other = build_run(card=replace(card(), held_out=held))
    assert "not the same text" in bleu_objection(build_run(), other)
    assert "not the same text" in loss_objection(build_run(), other)


def test_other_subword_recipes_make_other_tokens() -> None:
    one, other = build_run(), build_run()
    one = replace(one, recipe={**one.recipe, "subword": {"vocabulary": 8000}})
    other = replace(other, recipe={**other.recipe, "subword": {"vocabulary": 16000}})
    assert token_objection(one, other)
    assert not token_objection(one, build_run())
