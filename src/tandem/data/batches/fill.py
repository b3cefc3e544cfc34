"""Pieces from the shards put into batches."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.batch import Batch, PackedBatch, PaddedBatch
from tandem.data.batches.deal import Deal
from tandem.data.batches.shape import BatchShape, cut
from tandem.data.batches.tiles import build_tiles, order_pairs
from tandem.data.shards.ragged import Ragged, build_spans
from tandem.data.shards.shardset import ShardSet
from tandem.data.shards.special import SpecialIds

__all__ = ["build_batches", "build_packed", "build_padded"]

Ids: TypeAlias = NDArray[np.int32]


def build_batches(shards: ShardSet, dealt: Deal, *, rank: int, shape: BatchShape) -> tuple[Batch[Ids], ...]:
    """The micro-batches of one rank in an update; the same number on every rank, some perhaps empty."""
    batches: list[Batch[Ids]] = []
    for rows in cut(dealt, shape):
        source, target = shards.gather(dealt.update.pairs[dealt.rank(rank, rows)])
        if shape.layout == "padded":
            batches.append(build_padded(source, target, special=shards.special))
        else:
            batches.append(build_packed(source, target, special=shards.special, shape=shape))
    return tuple(batches)


def build_padded(source: Ragged, target: Ragged, *, special: SpecialIds) -> PaddedBatch[Ids]:
    """Rectangles as wide as the longest sentence of each side."""
    source_ids = _pad(source, special)
    labels = _pad(target, special)
    decoder_input = np.roll(labels, 1, axis=1)
    decoder_input[:, 0] = special.bos
    decoder_input[np.arange(labels.shape[1]) > target.lengths[:, None]] = special.pad
    return PaddedBatch(
        source=source_ids,
        source_lengths=_count_tokens(source),
        decoder_input=decoder_input,
        labels=labels,
        target_lengths=_count_tokens(target),
        pairs=len(target),
        target_tokens=len(target.ids) + len(target),
    )


def build_packed(
    source: Ragged, target: Ragged, *, special: SpecialIds, shape: BatchShape
) -> PackedBatch[Ids]:
    """Rows of the shape's size, whatever they hold; pairs stand in the order that fills attention's tiles."""
    order = order_pairs(_count_tokens(source), _count_tokens(target))
    source, target = _reorder(source, order), _reorder(target, order)
    tiles = build_tiles(
        _count_tokens(source),
        _count_tokens(target),
        source_places=shape.source_tokens,
        target_places=shape.target_tokens,
    )
    source_ids, source_positions, source_bounds = _pack(source, shape.source_tokens, shape.segments, special)
    labels, target_positions, target_bounds = _pack(target, shape.target_tokens, shape.segments, special)
    total = len(target.ids) + len(target)
    decoder_input = np.full_like(labels, special.pad)
    decoder_input[1:total] = labels[: max(total - 1, 0)]
    decoder_input[target_bounds[: len(target)]] = special.bos
    return PackedBatch(
        source=source_ids,
        source_positions=source_positions,
        source_bounds=source_bounds,
        decoder_input=decoder_input,
        labels=labels,
        target_positions=target_positions,
        target_bounds=target_bounds,
        source_tiles=tiles.source_tiles,
        target_tiles=tiles.target_tiles,
        tile_counts=tiles.tile_counts,
        source_sentences=tiles.source_sentences,
        target_sentences=tiles.target_sentences,
        longest_source=_longest(source),
        longest_target=_longest(target),
        pairs=len(target),
        target_tokens=total,
    )


def _longest(side: Ragged) -> int:
    return int(side.lengths.max(initial=0)) + 1


def _count_tokens(side: Ragged) -> Ids:
    return side.lengths.astype(np.int32) + 1


def _reorder(side: Ragged, order: NDArray[np.int64]) -> Ragged:
    lengths = side.lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    return Ragged(ids=side.ids[build_spans(starts[order], lengths[order])], lengths=lengths[order])


def _pad(side: Ragged, special: SpecialIds) -> Ids:
    lengths = side.lengths[:, None]
    width = np.arange(_longest(side))
    ids = np.where(width == lengths, np.int32(special.eos), np.int32(special.pad))
    ids[width < lengths] = side.ids
    return ids


def _pack(side: Ragged, capacity: int, segments: int, special: SpecialIds) -> tuple[Ids, Ids, Ids]:
    ends = np.cumsum(_count_tokens(side))
    total = len(side.ids) + len(side)
    bounds = np.full(segments + 1, total, np.int32)
    bounds[0] = 0
    bounds[1 : len(ends) + 1] = ends
    ids = np.full(capacity, special.pad, np.int32)
    ids[:total] = special.eos
    ids[np.arange(len(side.ids)) + np.repeat(np.arange(len(side)), side.lengths)] = side.ids
    positions = np.zeros(capacity, np.int32)
    positions[:total] = np.arange(total) - np.repeat(bounds[: len(side)], _count_tokens(side))
    return ids, positions, bounds
