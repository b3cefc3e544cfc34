import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tandem.data.batches.tiles import RowTiles, build_tiles, most_tiles, order_pairs
from tandem.kernels.side import TILE

Lengths = list[tuple[int, int]]

LENGTHS = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 200), st.integers(1, 40), st.just(64)),
        st.one_of(st.integers(1, 200), st.integers(1, 40), st.just(64)),
    ),
    max_size=40,
)
TAILS = st.tuples(st.integers(0, 150), st.integers(0, 150))


def sides(lengths: Lengths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.array(lengths, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def tiles_of(lengths: Lengths, tails: tuple[int, int] = (0, 0)) -> RowTiles:
    source, target = sides(lengths)
    places = int(source.sum()) + tails[0], int(target.sum()) + tails[1]
    return build_tiles(source, target, source_places=places[0], target_places=places[1])


@given(lengths=LENGTHS, tails=TAILS)
def test_every_place_is_in_one_tile_and_tables_have_room(lengths: Lengths, tails: tuple[int, int]) -> None:
    tiles = tiles_of(lengths, tails)
    tables = (
        (tiles.source_tiles, tiles.target_tiles, tiles.source_sentences, tiles.target_sentences),
        (tiles.target_tiles, tiles.source_tiles, tiles.target_sentences, tiles.source_sentences),
    )
    for (own, other, sentences, other_sentences), (count, loose) in zip(
        tables, tiles.tile_counts.tolist(), strict=True
    ):
        assert own.shape == (most_tiles(len(sentences), len(other_sentences)), 6)
        assert not own[count:].any()
        spans = sorted(tuple(row[:2]) for row in own[:count].tolist())
        assert [start for start, _ in spans] == [0, *(stop for _, stop in spans)][: len(spans)]
        assert [stop for _, stop in spans][-1:] == [len(sentences)][: len(spans)]
        assert all(0 < stop - start <= TILE for start, stop in spans)
        tiles_a_group = {tuple(row[2:4]): 0 for row in own[:count].tolist()}
        for row in own[:count].tolist():
            tiles_a_group[tuple(row[2:4])] += 1
        faced = {tuple(row[2:4]): 0 for row in other.tolist()}
        for row in other.tolist():
            faced[tuple(row[2:4])] += 1
        ones = [
            tiles_a_group[tuple(row[2:4])] == 1 and row[5] > row[4] and faced[tuple(row[4:])] == 1
            for row in own[:count].tolist()
        ]
        assert ones == [False] * loose + [True] * (count - loose)


@given(lengths=LENGTHS, tails=TAILS)
def test_a_tile_faces_all_places_of_its_sentences_on_both_sides(
    lengths: Lengths, tails: tuple[int, int]
) -> None:
    tiles = tiles_of(lengths, tails)
    tables = (
        (tiles.source_tiles, tiles.source_sentences, tiles.target_sentences),
        (tiles.target_tiles, tiles.target_sentences, tiles.source_sentences),
    )
    for (table, sentences, others), (count, _) in zip(tables, tiles.tile_counts.tolist(), strict=True):
        for start, stop, first, last, first_other, last_other in table[:count].tolist():
            assert first <= start < stop <= last
            assert (start - first) % TILE == 0
            held = np.unique(sentences[start:stop])
            for side, span in ((sentences, (first, last)), (others, (first_other, last_other))):
                places = np.flatnonzero(np.isin(side, held))
                assert set(places) <= set(range(*span))


@given(lengths=LENGTHS, tails=TAILS)
def test_pairs_keep_their_number_and_padding_has_others(lengths: Lengths, tails: tuple[int, int]) -> None:
    tiles = tiles_of(lengths, tails)
    for side, numbers in enumerate((tiles.source_sentences, tiles.target_sentences)):
        real = sum(pair[side] for pair in lengths)
        assert numbers[:real].tolist() == [n for n, pair in enumerate(lengths) for _ in range(pair[side])]
        assert numbers[real:].tolist() == [len(lengths) + n // TILE for n in range(tails[side])]


@given(lengths=LENGTHS)
def test_an_order_has_every_pair_once_and_is_the_same_each_time(lengths: Lengths) -> None:
    source, target = sides(lengths)
    order = order_pairs(source, target)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert order_pairs(source, target).tolist() == order.tolist()


@given(lengths=LENGTHS)
def test_a_pair_goes_where_it_leaves_least_room(lengths: Lengths) -> None:
    groups: list[list[int]] = []
    rooms: list[tuple[int, int]] = []
    latest: list[int] = []
    for step, pair in enumerate(sorted(range(len(lengths)), key=lambda number: -max(lengths[number]))):
        size = max(lengths[pair])
        fitting = [group for group, room in enumerate(rooms) if min(room) >= size]
        if fitting:
            group = min(fitting, key=lambda group: (min(rooms[group]), -latest[group]))
        else:
            group = len(groups)
            groups.append([])
            rooms.append((TILE, TILE))
            latest.append(step)
        groups[group].append(pair)
        rooms[group] = rooms[group][0] - lengths[pair][0], rooms[group][1] - lengths[pair][1]
        latest[group] = step
    assert order_pairs(*sides(lengths)).tolist() == [pair for group in groups for pair in group]


def test_an_order_fills_tiles_with_sentences_like_those_of_news() -> None:
    random = np.random.default_rng(1)
    target = np.clip(random.lognormal(3.2, 0.5, 1100), 1, 64).astype(np.int64)
    source = np.clip(target * random.lognormal(0, 0.2, 1100), 1, 64).astype(np.int64)
    order = order_pairs(source, target)
    places = {"source_places": int(source.sum()), "target_places": int(target.sum())}
    drawn, ordered = (
        int(build_tiles(source[rows], target[rows], **places).tile_counts[0, 0])
        for rows in (np.arange(1100), order)
    )
    least = max(places.values()) / TILE
    assert ordered < 1.1 * least < 1.25 * least < drawn


def test_a_long_pair_is_alone_in_its_group() -> None:
    tiles = tiles_of([(10, 10), (130, 20), (5, 5)])
    assert tiles.tile_counts.tolist() == [[5, 3], [3, 1]]
    assert tiles.source_tiles[:5].tolist() == [
        [10, 74, 10, 140, 10, 30],
        [74, 138, 10, 140, 10, 30],
        [138, 140, 10, 140, 10, 30],
        [0, 10, 0, 10, 0, 10],
        [140, 145, 140, 145, 30, 35],
    ]
    assert tiles.target_tiles[:3].tolist() == [
        [10, 30, 10, 30, 10, 140],
        [0, 10, 0, 10, 0, 10],
        [30, 35, 30, 35, 140, 145],
    ]


def test_padding_without_a_counterpart_faces_nothing() -> None:
    tiles = tiles_of([(3, 3)], (0, 66))
    assert tiles.tile_counts.tolist() == [[1, 0], [3, 2]]
    assert tiles.target_tiles[:3].tolist() == [
        [3, 67, 3, 67, 3, 3],
        [67, 69, 67, 69, 3, 3],
        [0, 3, 0, 3, 0, 3],
    ]
