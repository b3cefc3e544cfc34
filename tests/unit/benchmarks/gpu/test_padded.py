"""Batches for the others hold what they should, with little padding."""

import numpy as np
from benchmarks.gpu.corpus import Synthetic, draw_lengths
from benchmarks.gpu.padded import choose_pairs


def test_batches_are_near_the_size_asked_for_share_no_pair_and_are_alike_in_length() -> None:
    source, target = (side + 1 for side in draw_lengths(Synthetic(), np.random.default_rng(7), 120_000))
    chosen = choose_pairs(source, target, tokens=32_768, dice=np.random.default_rng(2))
    tokens = np.array([target[pairs].sum() for pairs in chosen])
    assert 90 <= len(chosen) <= 100
    assert abs(tokens - 32_768).max() <= 250
    joined = np.concatenate(chosen)
    assert len(np.unique(joined)) == len(joined)
    for side, most in ((target, 0.1), (source, 0.15)):
        places = sum(len(pairs) * side[pairs].max() for pairs in chosen)
        assert 1 - side[joined].sum() / places < most
    # Long and short ones must not come in order, since speed differs.
    longest = np.array([target[pairs].max() for pairs in chosen])
    assert abs(np.corrcoef(np.arange(len(chosen)), longest)[0, 1]) < 0.4


def test_a_text_too_small_for_a_batch_is_one_batch() -> None:
    lengths = np.array([3, 4, 5])
    (only,) = choose_pairs(lengths, lengths, tokens=1000, dice=np.random.default_rng(2))
    assert sorted(only.tolist()) == [0, 1, 2]
