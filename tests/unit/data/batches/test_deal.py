from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.data.batches.deal import HOLE, deal
from tandem.data.batches.plan import Cursor, Update, UpdatePlan
from tandem.data.shards.shardset import ShardSet

RANKS = [1, 2, 3, 4, 8]
BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]]


@pytest.fixture(scope="module")
def plan(build_shards: BuildShards, draw_lengths: Draw) -> UpdatePlan:
    return UpdatePlan(build_shards(draw_lengths(8000)), target_tokens=8000, seed=1)


def build_update(lengths: list[int], granules: list[int]) -> Update:
    tokens = np.array(lengths, np.int32)
    return Update(
        cursor=Cursor(),
        pairs=np.arange(len(lengths)),
        source_tokens=tokens,
        target_tokens=tokens,
        granules=np.array(granules),
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**60), budget=st.integers(1, 20_000), number=st.integers(0, 10**6))
def test_any_number_of_ranks_shares_the_same_pairs(
    plan: UpdatePlan, seed: int, budget: int, number: int
) -> None:
    other = UpdatePlan(plan.shards, target_tokens=budget, seed=seed, pool_pairs=2048)
    update = other.update(Cursor(update=number % other.updates(0)))
    for ranks in RANKS:
        dealt = deal(update, ranks)
        shares = [update.pairs[dealt.rank(rank)] for rank in range(ranks)]
        assert sorted(np.concatenate(shares)) == sorted(update.pairs)


@pytest.mark.parametrize("ranks", RANKS)
def test_ranks_get_equal_work(plan: UpdatePlan, ranks: int) -> None:
    for number in range(plan.updates(0)):
        dealt = deal(plan.update(Cursor(update=number)), ranks)
        for side in dealt.tokens():
            loads = side.sum(axis=0)
            assert loads.max() - loads.min() < 0.02 * loads.sum()


def test_one_enormous_pair_is_made_good_by_the_others() -> None:
    dealt = deal(build_update([10] * 60 + [30] * 29 + [300], [0, 60, 90]), 2)
    loads = dealt.tokens()[0].sum(axis=0)
    assert abs(int(loads[0] - loads[1])) <= 30


def test_pairs_of_one_row_are_alike(plan: UpdatePlan) -> None:
    dealt = deal(plan.update(Cursor()), 4)
    source, target = dealt.tokens()
    whole = (dealt.rows != HOLE).all(axis=1)
    for side in (source[whole], target[whole]):
        assert (side.max(axis=1) - side.min(axis=1)).mean() < 0.15 * side.mean()


def test_a_single_rank_gets_every_pair_in_its_place() -> None:
    dealt = deal(build_update([5, 9, 7, 8], [0, 1, 1, 4]), 1)
    assert dealt.rows.tolist() == [[0], [1], [2], [3]]
    assert dealt.granules.tolist() == [0, 1, 1, 4]


def test_more_ranks_than_pairs_leave_some_without() -> None:
    dealt = deal(build_update([5, 6, 7], [0, 1, 1, 2, 3]), 8)
    assert sorted(len(dealt.rank(rank)) for rank in range(8)) == [0] * 5 + [1] * 3
    assert dealt.ranks == 8
