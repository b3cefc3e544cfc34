import torch
from tests.learning import build_batch, pack

from tandem.data.batches.batch import PackedBatch
from tandem.model import PackedTokens, PaddedTokens
from tandem.train.tokens import to_tokens

PAIRS = [([5, 6, 7], [8]), ([9], [10, 11])]


def test_the_decoder_reads_the_shifted_target() -> None:
    source, target = to_tokens(build_batch(PAIRS))
    assert isinstance(source, PaddedTokens)
    assert isinstance(target, PaddedTokens)
    assert source.ids.tolist() == [[5, 6, 7, 2], [9, 2, 3, 3]]
    assert target.ids.tolist() == [[1, 8, 3], [1, 10, 11]]
    assert (source.lengths.tolist(), target.lengths.tolist()) == ([4, 2], [2, 3])


def test_packed_rows_keep_their_bounds() -> None:
    source, target = to_tokens(pack(PAIRS))
    assert isinstance(source, PackedTokens)
    assert isinstance(target, PackedTokens)
    assert source.bounds[:3].tolist() == [0, 4, 6]
    assert target.ids[:5].tolist() == [1, 8, 1, 10, 11]
    assert torch.equal(target.positions[:5], torch.tensor([0, 1, 0, 1, 2], dtype=torch.int32))


def test_packed_rows_bring_the_tables_that_attention_walks() -> None:
    batch = pack(PAIRS)
    assert isinstance(batch, PackedBatch)
    source, target = to_tokens(batch)
    assert isinstance(source, PackedTokens)
    assert isinstance(target, PackedTokens)
    assert source.side is not None
    assert target.side is not None
    assert source.side.tiles is batch.source_tiles
    assert target.side.tiles is batch.target_tiles
    assert source.side.sentences[:6].tolist() == [0, 0, 0, 0, 1, 1]
    assert target.side.sentences[:5].tolist() == [0, 0, 1, 1, 1]
    assert torch.equal(torch.stack([source.side.counts, target.side.counts]), batch.tile_counts)
