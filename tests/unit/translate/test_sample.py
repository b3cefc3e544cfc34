"""Samples: as likely as the model says, the same for the same seed."""

import math
from collections import Counter

import pytest
import torch
from torch import Tensor

from tandem.translate.beam import Hypothesis
from tandem.translate.engine import Sentence
from tandem.translate.marks import Marks
from tandem.translate.sample import draw_samples
from tandem.translate.wish import Sampling

START, END, A, B, BANNED = range(5)
ODDS = [0.0, 0.2, 0.5, 0.1, 0.2]
"""Of the next piece, whatever was said."""


def step(ids_R: Tensor) -> Tensor:
    return torch.tensor(ODDS).log().expand(len(ids_R), -1)


def drawn(sampling: Sampling, *, draws: int = 1_000, most: int = 0, number: int = 0) -> list[Hypothesis]:
    (found,) = draw_samples(
        step,
        [Sentence(source=(9,), most=most, number=number)],
        sampling=sampling,
        draws=draws,
        marks=Marks(start=START, end=END, banned=(START, BANNED)),
        device=torch.device("cpu"),
    )
    return found


def firsts(found: list[Hypothesis]) -> Counter[int]:
    return Counter(each.ids[0] if each.ids else END for each in found)


def test_pieces_are_drawn_as_often_as_they_are_likely_and_banned_ones_never() -> None:
    counts = firsts(drawn(Sampling(), most=1))
    assert set(counts) == {END, A, B}
    assert [counts[piece] / 1_000 for piece in (END, A, B)] == pytest.approx([0.25, 0.625, 0.125], abs=0.05)


def test_a_low_temperature_draws_the_likeliest_and_a_high_one_all_alike() -> None:
    assert set(firsts(drawn(Sampling(temperature=0.05), most=1))) == {A}
    counts = firsts(drawn(Sampling(temperature=1_000), most=1))
    assert [counts[piece] / 1_000 for piece in (END, A, B)] == pytest.approx([1 / 3] * 3, abs=0.05)


@pytest.mark.parametrize("temperature", [1e-30, 1e-40, 1e-300])
def test_the_lowest_temperatures_draw_the_likeliest_too(temperature: float) -> None:
    assert set(firsts(drawn(Sampling(temperature=temperature), draws=20, most=1))) == {A}


def test_only_the_likeliest_pieces_are_drawn_from() -> None:
    assert set(firsts(drawn(Sampling(top=1), most=1))) == {A}
    assert set(firsts(drawn(Sampling(top=2), most=1))) == {A, END}


def test_a_score_is_the_log_probability_whatever_the_temperature() -> None:
    for each in drawn(Sampling(temperature=3), draws=20, most=4):
        expected = sum(math.log(ODDS[piece]) for piece in (*each.ids, END))
        assert each.score == pytest.approx(expected, rel=1e-5)
        assert len(each.ids) <= 4


def test_samples_come_likeliest_first() -> None:
    scores = [each.score for each in drawn(Sampling(), draws=20, most=4)]
    assert scores == sorted(scores, reverse=True)


def test_the_same_seed_draws_the_same_and_another_seed_or_number_does_not() -> None:
    once = drawn(Sampling(seed=1), draws=20, most=9)
    assert once == drawn(Sampling(seed=1), draws=20, most=9)
    assert once != drawn(Sampling(seed=2), draws=20, most=9)
    assert once != drawn(Sampling(seed=1), draws=20, most=9, number=1)
    assert len({each.ids for each in once}) > 5


def test_no_sentence_needs_no_step() -> None:
    assert (
        draw_samples(
            step, [], sampling=Sampling(), draws=1, marks=Marks(start=0, end=1), device=torch.device("cpu")
        )
        == []
    )
