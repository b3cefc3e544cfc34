"""The arithmetic of a target token agrees with what is known of the two published shapes."""

from dataclasses import asdict

import numpy as np
import pytest
from benchmarks.gpu.corpus import Synthetic, draw_lengths

from tandem.config import ModelSection
from tandem.estimate.flops import WMT_LENGTHS, Lengths, forward_flops, training_flops


def wmt_lengths() -> Lengths:
    source, target = draw_lengths(Synthetic(), np.random.default_rng(5), 50_000)
    return Lengths.of(source + 1, target + 1)


@pytest.mark.parametrize(("preset", "known"), [("base", 365e6), ("big", 1257e6)])
def test_a_target_token_costs_what_is_known_of_the_two_published_shapes(preset: str, known: float) -> None:
    model = ModelSection.model_validate({"preset": preset})
    assert training_flops(model, vocabulary=32_000, lengths=wmt_lengths()) == pytest.approx(known, rel=0.03)


def test_the_lengths_for_texts_that_nobody_has_counted_are_those_of_such_a_text() -> None:
    assert asdict(WMT_LENGTHS) == pytest.approx(asdict(wmt_lengths()), rel=0.03)


def test_one_pair_of_a_tiny_model_counts_as_by_hand() -> None:
    model = ModelSection(width=2, heads=1, encoder_layers=1, decoder_layers=1, feed_forward=3)
    lengths = Lengths.of(np.array([5]), np.array([4]))
    encoder = 5 * 2 * (4 * 2 * 2 + 2 * 2 * 3) + 4 * 2 * 5 * 5
    decoder = 4 * 2 * (6 * 2 * 2 + 2 * 2 * 3) + 5 * 2 * (2 * 2 * 2) + 4 * 2 * (4 * 4 // 2 + 4 * 5)
    output = 4 * 2 * 2 * 7
    per_target_token = (encoder + decoder + output) / 4
    assert forward_flops(model, vocabulary=7, lengths=lengths) == pytest.approx(per_target_token)
    assert training_flops(model, vocabulary=7, lengths=lengths) == pytest.approx(3 * per_target_token)


def test_a_gated_feed_forward_part_has_half_as_much_again() -> None:
    lengths = wmt_lengths()
    plain, gated = (
        training_flops(ModelSection(gated=each), vocabulary=8, lengths=lengths) for each in (False, True)
    )
    extra = 3 * 2 * 6 * 512 * 2048 * (1 + lengths.source / lengths.target)
    assert gated - plain == pytest.approx(extra)
