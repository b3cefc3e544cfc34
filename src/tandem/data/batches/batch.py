"""What a rank trains on in one go: padded rectangles, or rows packed without padding."""

# Shapes: P pairs, S and T longest source and target sentence, C and D source and target capacity of a packed
# row, M the most sentences that it holds, R the most tiles of a side. All arrays are int32.

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

__all__ = ["Batch", "PackedBatch", "PaddedBatch"]

Array = TypeVar("Array")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddedBatch(Generic[Array]):
    """A sentence a row, filled up with the pad id; without a pair, P is 0 and S and T are 1."""

    source: Array
    """[P, S] pieces and the end mark."""
    source_lengths: Array
    """[P]"""
    decoder_input: Array
    """[P, T] the start mark and pieces."""
    labels: Array
    """[P, T] pieces and the end mark: what the decoder must say at each place."""
    target_lengths: Array
    """[P]"""
    pairs: int
    target_tokens: int

    def map(self, change: Callable[[Array], Other]) -> "PaddedBatch[Other]":
        """The same batch with every array changed: to tensors, to pinned memory, to a device."""
        return PaddedBatch(
            source=change(self.source),
            source_lengths=change(self.source_lengths),
            decoder_input=change(self.decoder_input),
            labels=change(self.labels),
            target_lengths=change(self.target_lengths),
            pairs=self.pairs,
            target_tokens=self.target_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedBatch(Generic[Array]):
    """Sentences end to end in a row of fixed size; what is left of the row holds the pad id at position 0."""

    source: Array
    """[C] pieces and the end mark of each sentence."""
    source_positions: Array
    """[C] place in the sentence, from 0."""
    source_bounds: Array
    """[M + 1] sentence i is source_bounds[i] to source_bounds[i + 1]; the rest hold the total."""
    decoder_input: Array
    """[D] the start mark and pieces."""
    labels: Array
    """[D] pieces and the end mark."""
    target_positions: Array
    """[D]"""
    target_bounds: Array
    """[M + 1]"""
    source_tiles: Array
    """[R, 6] what attention works on at a time: see tandem.data.batches.tiles."""
    target_tiles: Array
    """[R, 6]"""
    tile_counts: Array
    """[2, 2] tiles of source and target, and how many at the front of each are of long sentences."""
    source_sentences: Array
    """[C] number of the pair at each place; behind the last, padding has numbers of its own."""
    target_sentences: Array
    """[D]"""
    longest_source: int
    """Tokens of the longest source sentence, known to the host: attention needs it."""
    longest_target: int
    pairs: int
    target_tokens: int

    def map(self, change: Callable[[Array], Other]) -> "PackedBatch[Other]":
        """The same batch with every array changed: to tensors, to pinned memory, to a device."""
        return PackedBatch(
            source=change(self.source),
            source_positions=change(self.source_positions),
            source_bounds=change(self.source_bounds),
            decoder_input=change(self.decoder_input),
            labels=change(self.labels),
            target_positions=change(self.target_positions),
            target_bounds=change(self.target_bounds),
            source_tiles=change(self.source_tiles),
            target_tiles=change(self.target_tiles),
            tile_counts=change(self.tile_counts),
            source_sentences=change(self.source_sentences),
            target_sentences=change(self.target_sentences),
            longest_source=self.longest_source,
            longest_target=self.longest_target,
            pairs=self.pairs,
            target_tokens=self.target_tokens,
        )


Batch: TypeAlias = PaddedBatch[Array] | PackedBatch[Array]
