from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tandem.data.batches.batch import Batch, PackedBatch, PaddedBatch
from tandem.data.batches.deal import deal
from tandem.data.batches.fill import build_batches, build_packed, build_padded
from tandem.data.batches.plan import Cursor, UpdatePlan
from tandem.data.batches.shape import BatchShape, cut
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import ShardSet
from tandem.data.shards.special import SpecialIds

Ids = NDArray[np.int32]
BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]]

SPECIAL = SpecialIds(unk=0, bos=1, eos=2, pad=3)
SOURCE = Ragged.from_lists([[11, 12, 13], [], [14]])
TARGET = Ragged.from_lists([[21], [22, 23], []])
NOTHING = Ragged.from_lists([])
PACKED = BatchShape(layout="packed", source_tokens=32, target_tokens=40)


def sentences(batch: Batch[Ids]) -> list[tuple[list[int], list[int], list[int]]]:
    """Source, decoder input and labels of each pair, without padding."""
    found = []
    for number in range(batch.pairs):
        if isinstance(batch, PaddedBatch):
            source = (number, slice(int(batch.source_lengths[number])))
            target = (number, slice(int(batch.target_lengths[number])))
            found.append((batch.source[source], batch.decoder_input[target], batch.labels[target]))
        else:
            first = slice(*batch.source_bounds[number : number + 2].tolist())
            second = slice(*batch.target_bounds[number : number + 2].tolist())
            found.append((batch.source[first], batch.decoder_input[second], batch.labels[second]))
    return [(source.tolist(), given.tolist(), said.tolist()) for source, given, said in found]


def arrays(batch: Batch[Ids]) -> list[Ids]:
    found: list[Ids] = []

    def note(array: Ids) -> Ids:
        found.append(array)
        return array

    batch.map(note)
    return found


def test_a_padded_batch_is_filled_up_with_the_pad_id() -> None:
    batch = build_padded(SOURCE, TARGET, special=SPECIAL)
    assert batch.source.tolist() == [[11, 12, 13, 2], [2, 3, 3, 3], [14, 2, 3, 3]]
    assert batch.decoder_input.tolist() == [[1, 21, 3], [1, 22, 23], [1, 3, 3]]
    assert batch.labels.tolist() == [[21, 2, 3], [22, 23, 2], [2, 3, 3]]
    assert batch.source_lengths.tolist() == [4, 1, 2]
    assert batch.target_lengths.tolist() == [2, 3, 1]
    assert (batch.pairs, batch.target_tokens) == (3, 6)


def test_a_packed_batch_is_one_row_with_bounds() -> None:
    batch = build_packed(SOURCE, TARGET, special=SPECIAL, shape=PACKED)
    assert batch.source.tolist() == [11, 12, 13, 2, 2, 14, 2] + [3] * 25
    assert batch.source_positions.tolist() == [0, 1, 2, 3, 0, 0, 1] + [0] * 25
    assert batch.source_bounds.tolist() == [0, 4, 5] + [7] * 14
    assert batch.decoder_input.tolist() == [1, 21, 1, 22, 23, 1] + [3] * 34
    assert batch.labels.tolist() == [21, 2, 22, 23, 2, 2] + [3] * 34
    assert batch.target_positions.tolist() == [0, 1, 0, 1, 2, 0] + [0] * 34
    assert batch.target_bounds.tolist() == [0, 2, 5] + [6] * 14
    assert (batch.pairs, batch.target_tokens) == (3, 6)


def test_pairs_of_a_packed_batch_are_ordered_so_that_few_tiles_hold_them() -> None:
    lengths = [39, 39, 19, 19]
    sides = [Ragged(ids=np.repeat(np.arange(4, 8), lengths), lengths=np.array(lengths)) for _ in range(2)]
    shape = BatchShape(layout="packed", source_tokens=120, target_tokens=120)
    batch = build_packed(*sides, special=SPECIAL, shape=shape)
    assert batch.tile_counts.tolist() == [[2, 0], [2, 0]]
    assert [tile[:2] for tile in batch.source_tiles[:3].tolist()] == [[0, 60], [60, 120], [0, 0]]
    assert batch.source_sentences.tolist() == np.repeat(range(4), [40, 20, 40, 20]).tolist()
    assert sorted(sentences(batch)) == sorted(sentences(build_padded(*sides, special=SPECIAL)))
    for row, positions in ((batch.source, batch.source_positions), (batch.labels, batch.target_positions)):
        assert row[positions == 0].tolist() == [4, 7, 5, 6]


def test_a_batch_without_pairs_is_valid() -> None:
    padded = build_padded(NOTHING, NOTHING, special=SPECIAL)
    assert padded.source.shape == padded.decoder_input.shape == padded.labels.shape == (0, 1)
    packed = build_packed(NOTHING, NOTHING, special=SPECIAL, shape=PACKED)
    assert set(packed.source.tolist()) == set(packed.decoder_input.tolist()) == {3}
    assert not packed.target_bounds.any()
    for batch in (padded, packed):
        assert (batch.pairs, batch.target_tokens) == (0, 0)


@pytest.fixture(scope="module")
def shards(build_shards: BuildShards, draw_lengths: Draw) -> ShardSet:
    return build_shards(draw_lengths(3000, longest=60))


@settings(max_examples=20)
@given(
    ranks=st.sampled_from([1, 2, 3, 4, 8]),
    seed=st.integers(0, 2**40),
    budget=st.sampled_from([60, 900, 9000]),
)
def test_padded_and_packed_batches_hold_the_same_pairs(
    shards: ShardSet, ranks: int, seed: int, budget: int
) -> None:
    plan = UpdatePlan(shards, target_tokens=budget, seed=seed)
    update = plan.update(Cursor(update=seed % plan.updates(0)))
    dealt = deal(update, ranks)
    counts: set[int] = set()
    held: list[list[tuple[list[int], list[int], list[int]]]] = []
    for layout, kind in (("padded", PaddedBatch), ("packed", PackedBatch)):
        shape = BatchShape(layout=layout, source_tokens=512, target_tokens=400)  # type: ignore[arg-type]
        shares = [build_batches(shards, dealt, rank=rank, shape=shape) for rank in range(ranks)]
        assert len({len(share) for share in shares}) == 1
        batches = [batch for share in shares for batch in share]
        assert all(isinstance(batch, kind) for batch in batches)
        assert all(
            array.dtype == np.int32 and array.flags.c_contiguous for b in batches for array in arrays(b)
        )
        assert all(batch.source.size <= 512 and batch.labels.size <= 400 for batch in batches)
        counts.add(sum(batch.target_tokens for batch in batches))
        held.append(sorted(sentence for batch in batches for sentence in sentences(batch)))
    assert held[0] == held[1]
    assert counts == {int(update.target_tokens.sum())}
    source, target = shards.gather(update.pairs)
    first = np.split(source.ids, np.cumsum(source.lengths)[:-1])
    second = np.split(target.ids, np.cumsum(target.lengths)[:-1])
    expected = [
        ([*a.tolist(), 2], [1, *b.tolist()], [*b.tolist(), 2]) for a, b in zip(first, second, strict=True)
    ]
    assert held[0] == sorted(expected)


@pytest.mark.parametrize("ranks", [1, 3])
def test_packed_batches_of_an_update_are_those_of_its_pairs(shards: ShardSet, ranks: int) -> None:
    shape = BatchShape(layout="packed", source_tokens=512, target_tokens=400)
    dealt = deal(UpdatePlan(shards, target_tokens=3000, seed=7).update(Cursor()), ranks)
    for rank in range(ranks):
        made = build_batches(shards, dealt, rank=rank, shape=shape)
        parts = [dealt.update.pairs[dealt.rank(rank, rows)] for rows in cut(dealt, shape)]
        assert len(made) == len(parts) > 1
        for batch, pairs in zip(made, parts, strict=True):
            assert isinstance(batch, PackedBatch)
            expected = build_packed(*shards.gather(pairs), special=shards.special, shape=shape)
            for array, other in zip(arrays(batch), arrays(expected), strict=True):
                np.testing.assert_array_equal(array, other)
            assert batch.longest_source == expected.longest_source
            assert batch.longest_target == expected.longest_target
