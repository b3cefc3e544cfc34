from collections.abc import Callable

import pytest
from tests.learning import build_batch, pack
from torch import Tensor

from tandem.data.batches.batch import Batch, PackedBatch, PaddedBatch
from tandem.errors import TandemError
from tandem.train.split import Splitter, halve

PAIRS = [([5, 6, 7], [8]), ([9], [10, 11]), ([12, 13], [14, 15, 16, 17]), ([18], [19])]


def sentences(batch: Batch[Tensor]) -> list[tuple[list[int], list[int], list[int]]]:
    """Source, decoder input and labels of each pair, without padding."""
    if isinstance(batch, PaddedBatch):
        lengths = zip(batch.source_lengths.tolist(), batch.target_lengths.tolist(), strict=True)
        rows = zip(batch.source, batch.decoder_input, batch.labels, lengths, strict=True)
        return [(s[:n].tolist(), d[:m].tolist(), t[:m].tolist()) for s, d, t, (n, m) in rows]
    source, target = batch.source_bounds.tolist(), batch.target_bounds.tolist()
    return [
        (
            batch.source[source[row] : source[row + 1]].tolist(),
            batch.decoder_input[target[row] : target[row + 1]].tolist(),
            batch.labels[target[row] : target[row + 1]].tolist(),
        )
        for row in range(batch.pairs)
    ]


@pytest.mark.parametrize(("build", "shape", "tokens"), [(build_batch, (2, 3), (5, 7)), (pack, (7,), (7, 5))])
def test_halves_hold_the_same_sentences_and_no_more_padding_than_they_need(
    build: Callable[..., Batch[Tensor]], shape: tuple[int, ...], tokens: tuple[int, int]
) -> None:
    batch = build(PAIRS)
    first, second = halve(batch)
    assert sentences(first) + sentences(second) == sentences(batch)
    assert (first.pairs, second.pairs) == (2, 2)
    assert (first.target_tokens, second.target_tokens) == tokens
    assert first.labels.shape == shape


def test_positions_of_a_packed_half_begin_anew() -> None:
    _, second = halve(pack(PAIRS))
    assert isinstance(second, PackedBatch)
    assert second.source_bounds.tolist() == [0, 2, 4]
    assert second.source_positions.tolist() == [0, 1, 0, 1]
    assert second.target_positions.tolist() == [0, 1, 2, 0, 1]


def test_a_packed_half_has_tiles_of_its_own() -> None:
    first, second = halve(pack(PAIRS))
    assert isinstance(first, PackedBatch)
    assert isinstance(second, PackedBatch)
    assert first.source_tiles[0].tolist() == [0, 7, 0, 7, 0, 7]
    assert second.target_tiles[0].tolist() == [0, 5, 0, 5, 0, 4]
    assert second.tile_counts.tolist() == [[1, 0], [1, 0]]
    assert second.source_sentences.tolist() == [0, 0, 1, 1]
    assert second.target_sentences.tolist() == [0, 0, 0, 1, 1]


def test_what_fits_is_left_whole() -> None:
    batch = build_batch(PAIRS)
    assert Splitter().cut(batch) == [batch]


def test_what_failed_once_is_cut_before_it_is_tried_again() -> None:
    splitter, batch = Splitter(), build_batch(PAIRS)
    splitter.learn(batch)
    pieces = splitter.cut(batch)
    assert [piece.pairs for piece in pieces] == [2, 2]
    splitter.learn(pieces[1])
    assert [piece.pairs for piece in splitter.cut(batch)] == [2, 1, 1]


def test_a_single_pair_that_does_not_fit_says_so() -> None:
    with pytest.raises(TandemError, match=r"A single pair in a batch of 4 source and 2 target tokens"):
        Splitter().learn(build_batch(PAIRS[:1]))
