from dataclasses import replace

from tests.unit.observe.verdicts.exchange_story import REFERENCE, imported
from tests.unit.observe.verdicts.series_story import build_series

from tandem.observe.verdicts.data import judge
from tandem.runlog.card import DataCard
from tandem.runlog.event import BatchesPlanned


def test_the_card_answers_with_every_size(card: DataCard) -> None:
    found = judge(build_series(card=card))

    assert (found.verdict, found.confidence) == ("measured", "high")
    values = {each.name: each.value for each in found.evidence}
    assert values["raw files"] == card.raw.bytes
    assert values["clean pairs"] == card.cleaned.lines
    assert values["tokens"] == card.tokens.source + card.tokens.target
    assert values["shards"] == card.stored.bytes
    for each in card.dropped:
        assert values[f"dropped: {each.reason}"] == each.count


def test_padding_is_of_the_run_where_it_was_planned(card: DataCard) -> None:
    planned = BatchesPlanned(pairs=10, updates_per_epoch=3, padding_share=0.25)

    assert "Padding is 25.0 %" in judge(build_series(card=card, planned=planned)).answer


def test_overlap_that_was_not_looked_for_is_no_zero(card: DataCard) -> None:
    unchecked = tuple(replace(each, overlap_checked=False) for each in card.held_out)

    found = judge(build_series(card=replace(card, held_out=unchecked)))

    assert len(found.missing) == len(unchecked)
    assert found.advice


def test_an_empty_card_divides_by_nothing(empty_card: DataCard) -> None:
    assert judge(build_series(card=empty_card)).verdict == "measured"


def test_without_a_card_only_pairs_are_known() -> None:
    found = judge(build_series())

    assert (found.verdict, found.confidence) == ("measured", "medium")
    assert found.missing


def test_an_imported_run_says_how_much_it_read_and_not_how_big_it_is() -> None:
    found = judge(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "2,304,000 pairs" in found.answer
    assert judge(imported()).verdict == "cannot tell"


def test_a_run_without_a_start_is_not_guessed_at() -> None:
    assert judge(build_series(starts=())).verdict == "cannot tell"
