"""Pieces from the shards put into batches."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.batch import Batch, PackedBatch, PaddedBatch
from tandem.data.batches.deal import Deal
from tandem.data.batches.plan import Update
from tandem.data.batches.shape import BatchShape, cut
from tandem.data.batches.tiles import build_tiles, order_pairs
from tandem.data.shards.ragged import Ragged, pick_ended
from tandem.data.shards.shardset import ShardSet
from tandem.data.shards.special import SpecialIds

__all__ = ["build_batches", "build_packed", "build_padded"]

Ids: TypeAlias = NDArray[np.int32]


def build_batches(shards: ShardSet, dealt: Deal, *, rank: int, shape: BatchShape) -> tuple[Batch[Ids], ...]:
    """The micro-batches of one rank in an update; the same number on every rank, some perhaps empty."""
    batches: list[Batch[Ids]] = []
    for rows in cut(dealt, shape):
        places = dealt.rank(rank, rows)
        if shape.layout == "padded":
            sides = shards.gather(dealt.update.pairs[places])
            batches.append(build_padded(*sides, special=shards.special))
        else:
            batches.append(_gather_packed(shards, dealt.update, places=places, shape=shape))
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
    sides = (_reorder(side, order, end=special.eos) for side in (source, target))
    return _lay_out(*sides, special=special, shape=shape)


def _gather_packed(
    shards: ShardSet, update: Update, *, places: NDArray[np.int64], shape: BatchShape
) -> PackedBatch[Ids]:
    # The plan knows the lengths: pairs are read in their final order, and pieces are moved only once.
    order = order_pairs(update.source_tokens[places], update.target_tokens[places])
    source, target = shards.gather_ended(update.pairs[places[order]])
    return _lay_out(source, target, special=shards.special, shape=shape)


def _lay_out(source: Ragged, target: Ragged, *, special: SpecialIds, shape: BatchShape) -> PackedBatch[Ids]:
    """Sentences with end marks, in their final order, as rows."""
    tiles = build_tiles(
        source.lengths,
        target.lengths,
        source_places=shape.source_tokens,
        target_places=shape.target_tokens,
    )
    source_row = _pack(source, shape.source_tokens, segments=shape.segments, pad=special.pad)
    target_row = _pack(target, shape.target_tokens, segments=shape.segments, pad=special.pad)
    total = len(target.ids)
    decoder_input = np.empty_like(target_row.ids)
    decoder_input[1:total] = target_row.ids[: max(total - 1, 0)]
    decoder_input[total:] = special.pad
    decoder_input[target_row.bounds[: len(target)]] = special.bos
    return PackedBatch(
        source=source_row.ids,
        source_positions=source_row.positions,
        source_bounds=source_row.bounds,
        decoder_input=decoder_input,
        labels=target_row.ids,
        target_positions=target_row.positions,
        target_bounds=target_row.bounds,
        source_tiles=tiles.source_tiles,
        target_tiles=tiles.target_tiles,
        tile_counts=tiles.tile_counts,
        source_sentences=tiles.source_sentences,
        target_sentences=tiles.target_sentences,
        longest_source=int(source.lengths.max(initial=1)),
        longest_target=int(target.lengths.max(initial=1)),
        pairs=len(target),
        target_tokens=total,
    )


def _longest(side: Ragged) -> int:
    return int(side.lengths.max(initial=0)) + 1


def _count_tokens(side: Ragged) -> Ids:
    return side.lengths.astype(np.int32) + 1


def _reorder(side: Ragged, order: NDArray[np.int64], *, end: int) -> Ragged:
    lengths = side.lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    return pick_ended(side.ids, starts[order], lengths[order], end=end)


def _pad(side: Ragged, special: SpecialIds) -> Ids:
    lengths = side.lengths[:, None]
    width = np.arange(_longest(side))
    ids = np.where(width == lengths, np.int32(special.eos), np.int32(special.pad))
    ids[width < lengths] = side.ids
    return ids


class _Row(NamedTuple):
    ids: Ids
    positions: Ids
    bounds: Ids


def _pack(side: Ragged, capacity: int, *, segments: int, pad: int) -> _Row:
    pairs, total = len(side), len(side.ids)
    bounds = np.empty(segments + 1, np.int32)
    bounds[0] = 0
    bounds[1 : pairs + 1] = side.lengths.cumsum()
    bounds[pairs + 1 :] = total
    ids = np.empty(capacity, np.int32)
    ids[:total] = side.ids
    ids[total:] = pad
    positions = np.arange(capacity, dtype=np.int32)
    positions[:total] -= bounds[:pairs].repeat(side.lengths)
    positions[total:] = 0
    return _Row(ids=ids, positions=positions, bounds=bounds)
