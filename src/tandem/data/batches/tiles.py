"""Packed rows cut into tiles for attention: which pairs share a tile, and tables that say so."""

# Shapes: C and D source and target places of a packed row, R the most tiles of a side. All tables are int32.

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.kernels.side import TILE

__all__ = ["RowTiles", "build_tiles", "most_tiles", "order_pairs"]

Table: TypeAlias = NDArray[np.int32]
Tokens: TypeAlias = NDArray[np.integer[Any]]
Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTiles:
    """Every place of both sides is in one tile; the padding at the end counts as sentences of up to TILE places."""

    source_tiles: Table
    """[R, 6] start and stop of a tile, of its group on this side, of its group on the other; unused rows are 0."""
    target_tiles: Table
    tile_counts: Table
    """[2, 2] source and target: all tiles, and those at the front that do not face exactly one of the other side."""
    source_sentences: Table
    """[C] number of the sentence pair at each place."""
    target_sentences: Table
    """[D]"""


def order_pairs(source_tokens: Tokens, target_tokens: Tokens) -> Places:
    """The order in which pairs fill tiles best: each, from the longest down, goes where it leaves least room."""
    sizes = np.maximum(source_tokens, target_tokens)
    by_size = (-sizes.astype(np.int64)).argsort(kind="stable")
    # No two pairs of more than half a tile share one: each of these begins a group.
    alone = int(np.count_nonzero(sizes > TILE // 2))
    left_source, left_target = (
        (TILE - tokens[by_size[:alone]]).tolist() for tokens in (source_tokens, target_tokens)
    )
    with_room = _stack_groups(TILE - sizes[by_size[:alone]])
    # Bit r stands for a group with room for r tokens more on both sides: the smallest that fits is one bit away.
    rooms = sum(1 << room for room, groups in enumerate(with_room) if groups)
    chosen = list(range(alone))
    rest = (tokens[by_size[alone:]].tolist() for tokens in (sizes, source_tokens, target_tokens))
    for size, source, target in zip(*rest, strict=True):
        fitting = rooms >> size
        if fitting:
            room = size + (fitting & -fitting).bit_length() - 1
            groups = with_room[room]
            group = groups.pop()
            if not groups:
                rooms ^= 1 << room
            source_room = left_source[group] = left_source[group] - source
            target_room = left_target[group] = left_target[group] - target
        else:
            group = len(left_source)
            source_room, target_room = TILE - source, TILE - target
            left_source.append(source_room)
            left_target.append(target_room)
        chosen.append(group)
        room = source_room if source_room < target_room else target_room  # noqa: FURB136  (a call is slow here)
        if room:
            with_room[room].append(group)
            rooms |= 1 << room
    return by_size[np.array(chosen, np.int32).argsort(kind="stable")]


def most_tiles(own_places: int, other_places: int) -> int:
    """Rows that a table of tiles surely has enough of, whatever sentences the places hold."""
    # Two neighbouring groups have more than TILE tokens on some side, so that there are at most 2 (own + other) / TILE
    # + 1 groups; a group, like the padding at the end, has at most one tile more than its own places fill.
    return (3 * own_places + 2 * other_places) // TILE + 2


def build_tiles(
    source_tokens: Tokens, target_tokens: Tokens, *, source_places: int, target_places: int
) -> RowTiles:
    """The tables of two rows of so many places, which hold pairs of these lengths in this order."""
    starts = _group(source_tokens, target_tokens)
    source_bounds = _bounds(source_tokens, starts, source_places)
    target_bounds = _bounds(target_tokens, starts, target_places)
    groups = max(len(source_bounds), len(target_bounds))
    # A tail that is over on one side stands opposite to nothing.
    source_bounds = np.pad(source_bounds, (0, groups - len(source_bounds)), mode="edge")
    target_bounds = np.pad(target_bounds, (0, groups - len(target_bounds)), mode="edge")
    source_tiles, *source_counts = _tile(source_bounds, target_bounds)
    target_tiles, *target_counts = _tile(target_bounds, source_bounds)
    return RowTiles(
        source_tiles=source_tiles,
        target_tiles=target_tiles,
        tile_counts=np.array([source_counts, target_counts], np.int32),
        source_sentences=_number(source_tokens, source_places),
        target_sentences=_number(target_tokens, target_places),
    )


def _stack_groups(rooms: Tokens) -> list[list[int]]:
    """The numbers of the groups with each room from 0 to TILE; none with 0, which is of no use. Rooms must rise."""
    bounds = rooms.searchsorted(np.arange(1, TILE + 2)).tolist()
    return [[], *(list(range(start, stop)) for start, stop in pairwise(bounds))]


def _group(source_tokens: Tokens, target_tokens: Tokens) -> list[int]:
    """The first pair of each group, and their number: as many neighbours as fit into a tile on both sides."""
    starts = []
    source = target = TILE
    pairs = zip(source_tokens.tolist(), target_tokens.tolist(), strict=True)
    for pair, (more_source, more_target) in enumerate(pairs):
        source += more_source
        target += more_target
        if source > TILE or target > TILE:
            starts.append(pair)
            source, target = more_source, more_target
    return [*starts, len(source_tokens)]


def _bounds(tokens: Tokens, starts: list[int], places: int) -> Places:
    """Where groups begin and the last one ends; the padding behind them is in groups of its own."""
    ends = np.concatenate(([0], np.cumsum(tokens, dtype=np.int64)))[starts]
    return np.concatenate((ends[:-1], np.arange(ends[-1], places, TILE), [places]))


def _tile(own: Places, other: Places) -> tuple[Table, int, int]:
    """The table of a side, its tiles, and how many of them are of groups without exactly one tile on each side."""
    tiles = -(-np.diff(own) // TILE)
    other_tiles = -(-np.diff(other) // TILE)
    loose = (tiles != 1) | (other_tiles != 1)
    order = np.argsort(~loose, kind="stable")
    group = np.repeat(order, tiles[order])
    first = np.cumsum(tiles[order]) - tiles[order]
    start = own[group] + TILE * (np.arange(len(group)) - np.repeat(first, tiles[order]))
    table = np.zeros((most_tiles(int(own[-1]), int(other[-1])), 6), np.int32)
    columns = (start, start + TILE, own[group], own[group + 1], other[group], other[group + 1])
    for column, places in enumerate(columns):
        table[: len(group), column] = places
    np.minimum(table[:, 1], table[:, 3], out=table[:, 1])
    return table, len(group), int(tiles[loose].sum())


def _number(tokens: Tokens, places: int) -> Table:
    total = int(tokens.sum())
    numbers = np.empty(places, np.int32)
    numbers[:total] = np.repeat(np.arange(len(tokens), dtype=np.int32), tokens)
    numbers[total:] = len(tokens) + np.arange(places - total) // TILE
    return numbers
