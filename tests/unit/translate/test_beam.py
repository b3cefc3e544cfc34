import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.translate.table_model import (
    BANNED,
    END,
    START,
    TableModel,
    all_hypotheses,
    plain_search,
    random_logits,
)

from tandem.translate import beam as beam_module
from tandem.translate.beam import Hypothesis, Search, Start, beam_search
from tandem.translate.marks import Marks
from tandem.translate.penalty import LengthPenalty

VOCABULARY = 6
WIDE = 81
Seeds = st.lists(st.integers(0, 10**6), min_size=1, max_size=4, unique=True)
Penalties = st.sampled_from(
    [
        LengthPenalty(alpha=0),
        LengthPenalty(alpha=0.6),
        LengthPenalty(alpha=2),
        LengthPenalty(alpha=1, kind="power"),
        LengthPenalty(alpha=0.6, kind="power"),
    ]
)


def same(left: list[Hypothesis], right: list[Hypothesis]) -> bool:
    return [one.ids for one in left] == [one.ids for one in right] and [
        one.score for one in left
    ] == pytest.approx([one.score for one in right], abs=1e-4)


@settings(max_examples=40)
@given(seeds=Seeds, penalty=Penalties, best=st.integers(1, 6), data=st.data())
def test_a_wide_beam_finds_what_going_through_everything_finds(
    seeds: list[int], penalty: LengthPenalty, best: int, data: st.DataObject
) -> None:
    limits = [data.draw(st.integers(2, 3)) for _ in seeds]
    search = Search(beam=WIDE, best=best, penalty=penalty)
    found = TableModel(seeds, beam=WIDE, vocabulary=VOCABULARY).search(limits, search)
    for seed, limit, hypotheses in zip(seeds, limits, found, strict=True):
        assert same(hypotheses, all_hypotheses(seed, limit, VOCABULARY, search)[:best])


@settings(max_examples=80)
@given(seeds=Seeds, penalty=Penalties, beam=st.integers(2, 5), data=st.data())
def test_a_narrow_beam_finds_what_the_textbook_s_finds_and_needs_not_go_to_the_limit(
    seeds: list[int], penalty: LengthPenalty, beam: int, data: st.DataObject
) -> None:
    limits = [data.draw(st.integers(0, 9)) for _ in seeds]
    search = Search(beam=beam, best=data.draw(st.integers(1, beam)), penalty=penalty)
    found = TableModel(seeds, beam=beam, vocabulary=9).search(limits, search)
    for seed, limit, hypotheses in zip(seeds, limits, found, strict=True):
        assert same(hypotheses, plain_search(seed, limit, 9, search)[: search.best])


Prefixes = st.lists(st.integers(BANNED, VOCABULARY - 1), max_size=2).map(tuple)


@settings(max_examples=40)
@given(seeds=Seeds, penalty=Penalties, best=st.integers(1, 6), data=st.data())
def test_with_prefixes_a_wide_beam_finds_what_going_through_everything_finds(
    seeds: list[int], penalty: LengthPenalty, best: int, data: st.DataObject
) -> None:
    limits = [data.draw(st.integers(2, 4)) for _ in seeds]
    prefixes = [data.draw(Prefixes) for _ in seeds]  # which may hold what is never chosen
    search = Search(beam=WIDE, best=best, penalty=penalty)
    found = TableModel(seeds, beam=WIDE, vocabulary=VOCABULARY).search(limits, search, prefixes=prefixes)
    for seed, limit, prefix, hypotheses in zip(seeds, limits, prefixes, found, strict=True):
        expected = all_hypotheses(seed, limit, VOCABULARY, search, prefix=prefix)[:best]
        assert same(hypotheses, expected)
        assert all(each.ids[: len(prefix)] == prefix for each in hypotheses)


@settings(max_examples=40)
@given(seeds=Seeds, penalty=Penalties, beam=st.integers(1, 4), every=st.integers(2, 9))
def test_looking_seldom_at_what_is_done_changes_no_hypothesis(
    seeds: list[int], penalty: LengthPenalty, beam: int, every: int
) -> None:
    limits = [3 + number * 2 for number in range(len(seeds))]
    search = Search(beam=beam, best=beam, penalty=penalty)
    often = TableModel(seeds, beam=beam, vocabulary=9).search(limits, search)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_module, "CLOSE_EVERY", {"cpu": every})
        model = TableModel(seeds, beam=beam, vocabulary=9)
        assert model.search(limits, search) == often
        assert len(model.rows_searched) <= max(limits) + 1


@settings(max_examples=60)
@given(seeds=Seeds, penalty=Penalties, beam=st.integers(1, 5), data=st.data())
def test_a_sentence_gets_the_same_hypotheses_alone_and_among_others(
    seeds: list[int], penalty: LengthPenalty, beam: int, data: st.DataObject
) -> None:
    limits = [data.draw(st.integers(0, 12)) for _ in seeds]
    search = Search(beam=beam, best=data.draw(st.integers(1, beam)), penalty=penalty)
    together = TableModel(seeds, beam=beam, vocabulary=9).search(limits, search)
    for seed, limit, hypotheses in zip(seeds, limits, together, strict=True):
        assert [hypotheses] == TableModel([seed], beam=beam, vocabulary=9).search([limit], search)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), limit=st.integers(0, 12))
def test_a_beam_of_one_is_greedy(seed: int, limit: int) -> None:
    said: tuple[int, ...] = ()
    while len(said) < limit:
        odds = random_logits(seed, said, 9)
        last = max(set(range(9)) - {START, BANNED}, key=lambda piece: odds[piece])
        if last == END:
            break
        said = (*said, last)
    (found,) = TableModel([seed], beam=1, vocabulary=9).search([limit], Search(beam=1))
    assert [one.ids for one in found] == [said]


@settings(max_examples=40)
@given(seeds=Seeds, beam=st.integers(1, 5))
def test_hypotheses_are_distinct_best_first_within_their_limit_and_hold_nothing_banned(
    seeds: list[int], beam: int
) -> None:
    limits = [4 + number for number in range(len(seeds))]
    found = TableModel(seeds, beam=beam, vocabulary=9).search(limits, Search(beam=beam, best=beam))
    for limit, hypotheses in zip(limits, found, strict=True):
        assert hypotheses
        assert len({one.ids for one in hypotheses}) == len(hypotheses)
        assert [one.score for one in hypotheses] == sorted((one.score for one in hypotheses), reverse=True)
        assert all(len(one.ids) <= limit for one in hypotheses)
        assert not {START, END, BANNED} & {piece for one in hypotheses for piece in one.ids}


def odds(**of: float) -> list[float]:
    """Of the vocabulary: start, end, banned, a, b."""
    return [0.0, of.get("end", 0.0), 0.0, of.get("a", 0.0), of.get("b", 0.0)]


A = 3


def test_a_short_hypothesis_does_not_end_the_search_while_a_longer_one_can_win() -> None:
    table = {(A,) * length: odds(a=0.98, b=0.01, end=0.01) for length in range(1, 6)}
    table |= {(): odds(end=0.5, a=0.5), (A,) * 6: odds(end=1.0)}
    model = TableModel([0], beam=2, vocabulary=5, table=table)
    (found,) = model.search([10], Search(beam=2, penalty=LengthPenalty(alpha=1)))
    assert found[0].ids == (A,) * 6


def test_the_search_ends_at_once_when_no_live_hypothesis_can_win() -> None:
    model = TableModel([0], beam=2, vocabulary=5, table={(): odds(end=0.9, a=0.1)})
    (found,) = model.search([10], Search(beam=2, penalty=LengthPenalty(alpha=0)))
    assert model.rows_searched == [2]
    assert same(found, [Hypothesis(ids=(), score=math.log(0.9))])


def test_more_hypotheses_are_looked_for_while_fewer_are_kept_than_asked_for() -> None:
    table = {(): odds(end=0.9, a=0.1), (A,): odds(end=1.0)}
    model = TableModel([0], beam=2, vocabulary=5, table=table)
    (found,) = model.search([10], Search(beam=2, best=2, penalty=LengthPenalty(alpha=0)))
    assert [one.ids for one in found] == [(), (A,)]


def test_finished_sentences_leave_the_batch() -> None:
    seeds = list(range(20))
    model = TableModel(seeds, beam=2, vocabulary=5)
    model.search([2 + number // 4 for number in seeds], Search(beam=2))
    assert model.rows_searched[0] == 40
    assert model.rows_searched == sorted(model.rows_searched, reverse=True)
    assert len(set(model.rows_searched)) > 2


def test_the_last_step_of_a_sentence_counts_what_the_end_mark_costs() -> None:
    table = {(): odds(a=1.0), (A,): odds(a=0.75, end=0.25)}
    (found,) = TableModel([0], beam=1, vocabulary=5, table=table).search([1], Search(beam=1))
    assert same(found, [Hypothesis(ids=(A,), score=math.log(0.25) / LengthPenalty().at(2))])


def test_equal_odds_give_the_same_hypotheses_every_time() -> None:
    table = {
        said: odds(end=1, a=1, b=1)
        for length in range(5)
        for said in [tuple(3 + (bits >> place & 1) for place in range(length)) for bits in range(2**length)]
    }
    search = Search(beam=3, best=3)
    alone = TableModel([0], beam=3, vocabulary=5, table=table).search([4], search)
    assert TableModel([0, 1, 2], beam=3, vocabulary=5, table=table).search([4, 4, 4], search) == alone * 3


def test_a_model_that_has_diverged_gives_no_hypothesis() -> None:
    found = beam_search(
        lambda ids_R: torch.full((len(ids_R), 5), math.nan),
        TableModel([], beam=2, vocabulary=5).select,
        [Start(5), Start(3)],
        search=Search(beam=2),
        marks=Marks(start=0, end=1),
        device=torch.device("cpu"),
    )
    assert found == [[], []]


def test_no_sentence_needs_no_step() -> None:
    model = TableModel([], beam=2, vocabulary=5)
    assert model.search([], Search(beam=2)) == []
    assert model.rows_searched == []


@pytest.mark.parametrize(("beam", "best"), [(0, 0), (0, 1), (2, 3), (2, 0)])
def test_a_search_for_more_than_its_beam_is_refused(beam: int, best: int) -> None:
    with pytest.raises(ValueError, match="cannot give"):
        Search(beam=beam, best=best)


def test_fewer_hypotheses_are_given_where_no_more_exist() -> None:
    (found,) = TableModel([5], beam=9, vocabulary=5).search([1], Search(beam=9, best=9))
    assert sorted(one.ids for one in found) == [(), (3,), (4,)]
