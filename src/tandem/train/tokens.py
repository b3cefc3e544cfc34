"""Batches as the model reads them."""

from torch import Tensor

from tandem.data.batches.batch import Batch, PaddedBatch
from tandem.kernels.side import Side
from tandem.model.tokens import PackedTokens, PaddedTokens, Tokens

__all__ = ["to_tokens"]


def to_tokens(batch: Batch[Tensor]) -> tuple[Tokens, Tokens]:
    """What the encoder reads and what the decoder reads; the tensors are the batch's own."""
    if isinstance(batch, PaddedBatch):
        return (
            PaddedTokens(ids=batch.source, lengths=batch.source_lengths),
            PaddedTokens(ids=batch.decoder_input, lengths=batch.target_lengths),
        )
    return (
        PackedTokens(
            ids=batch.source,
            positions=batch.source_positions,
            bounds=batch.source_bounds,
            longest=batch.longest_source,
            side=Side(
                tiles=batch.source_tiles, counts=batch.tile_counts[0], sentences=batch.source_sentences
            ),
        ),
        PackedTokens(
            ids=batch.decoder_input,
            positions=batch.target_positions,
            bounds=batch.target_bounds,
            longest=batch.longest_target,
            side=Side(
                tiles=batch.target_tiles, counts=batch.tile_counts[1], sentences=batch.target_sentences
            ),
        ),
    )
