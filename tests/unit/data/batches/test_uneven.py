from collections.abc import Callable
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tandem.data.batches.plan import Cursor, Update, UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import BatchStream, UpdateBatches
from tandem.data.batches.uneven import EQUAL, Portions, Shares, ShareSchedule, choose_owners, take_part
from tandem.data.shards.shardset import ShardSet

BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[NDArray[np.int64], ...]]
SHARES = st.lists(st.floats(0.05, 1.0), min_size=2, max_size=8).map(tuple)


@pytest.fixture(scope="module")
def plan(build_shards: BuildShards, draw_lengths: Draw) -> UpdatePlan:
    return UpdatePlan(build_shards(draw_lengths(4000)), target_tokens=4000, seed=1)


def work(update: Update) -> NDArray[np.int64]:
    return (update.source_tokens + update.target_tokens).astype(np.int64)


@settings(max_examples=50, deadline=None)
@given(shares=SHARES, seed=st.integers(0, 2**60), budget=st.integers(1, 12_000), number=st.integers(0, 10**6))
def test_every_pair_is_dealt_once_whatever_the_shares(
    plan: UpdatePlan, shares: Shares, seed: int, budget: int, number: int
) -> None:
    other = UpdatePlan(plan.shards, target_tokens=budget, seed=seed, pool_pairs=2048)
    update = other.update(Cursor(update=number % other.updates(0)))
    parts = [take_part(update, shares, rank) for rank in range(len(shares))]
    assert sorted(np.concatenate([part.pairs for part in parts])) == sorted(update.pairs)
    assert sum(int(part.target_tokens.sum()) for part in parts) == int(update.target_tokens.sum())
    for part in parts:
        assert (part.granules[0], part.granules[-1]) == (0, len(part.pairs))
        assert len(part.granules) == len(update.granules)


@settings(max_examples=50, deadline=None)
@given(shares=SHARES, number=st.integers(0, 20))
def test_no_rank_gets_more_than_a_pair_too_many(plan: UpdatePlan, shares: Shares, number: int) -> None:
    update = plan.update(Cursor(update=number))
    loads = np.bincount(choose_owners(update, shares), work(update), minlength=len(shares))
    wanted = np.array(shares) / sum(shares) * work(update).sum()
    assert (loads - wanted <= work(update).max()).all()
    assert (loads > 0).all()


@pytest.mark.parametrize("shares", [(0.25, 0.75), (0.1, 0.4, 0.5), (0.05, 0.25, 0.3, 0.4)])
def test_small_updates_are_dealt_in_proportion_on_both_sides(plan: UpdatePlan, shares: Shares) -> None:
    for number in range(20):
        update = plan.update(Cursor(update=number))
        for rank, share in enumerate(shares):
            part = take_part(update, shares, rank)
            assert work(part).sum() / work(update).sum() == pytest.approx(share, abs=0.005)
            assert part.target_tokens.sum() / update.target_tokens.sum() == pytest.approx(share, abs=0.03)


def test_every_rank_gets_its_share_of_every_granule(plan: UpdatePlan) -> None:
    update = plan.update(Cursor(update=3))
    part = take_part(update, (0.3, 0.7), 0)
    for number in range(len(update.granules) - 1):
        mine = work(part)[part.granules[number] : part.granules[number + 1]].sum()
        whole = work(update)[update.granules[number] : update.granules[number + 1]].sum()
        assert mine / whole == pytest.approx(0.3, abs=0.05)


def test_more_ranks_than_pairs_leave_some_without() -> None:
    update = Update(
        cursor=Cursor(),
        pairs=np.arange(2),
        source_tokens=np.array([5, 6], np.int32),
        target_tokens=np.array([5, 6], np.int32),
        granules=np.array([0, 1, 1, 2, 2]),
    )
    parts = [take_part(update, (0.25,) * 4, rank) for rank in range(4)]
    assert sorted(len(part.pairs) for part in parts) == [0, 0, 1, 1]


def places(update: UpdateBatches) -> list[int]:
    return [max(batch.source.numel(), batch.labels.numel()) for batch in update.batches]


def pairs_of(update: UpdateBatches) -> list[tuple[int, ...]]:
    """All target sentences, by their pieces."""
    rows: list[tuple[int, ...]] = []
    for batch in update.batches:
        lengths = getattr(batch, "target_lengths", None)
        if lengths is None:
            bounds = batch.target_bounds.tolist()  # type: ignore[union-attr]
            rows += [tuple(batch.labels[a:b].tolist()) for a, b in pairwise(bounds) if b > a]
        else:
            rows += [tuple(row[:n].tolist()) for row, n in zip(batch.labels, lengths, strict=True)]
    return rows


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_a_small_memory_bounds_each_micro_batch_and_content_stays(plan: UpdatePlan, layout: str) -> None:
    shape = BatchShape(layout=layout, source_tokens=256, target_tokens=256)  # type: ignore[arg-type]
    shares, capacities = (0.6, 0.4), (1024, 256)
    updates = []
    for rank, capacity in enumerate(capacities):
        schedule = ShareSchedule([(1, shares)])
        portions = Portions(plan, schedule, rank=rank, layout=shape.layout, capacity_tokens=capacity)
        with BatchStream(
            plan, start=Cursor(), shape=shape, rank=rank, ranks=2, portions=portions, depth=1
        ) as stream:
            updates.append(next(stream))
        assert max(places(updates[-1])) <= capacity
    assert len(updates[1].batches) > len(updates[0].batches)
    with BatchStream(plan, start=Cursor(), shape=replace(shape, source_tokens=8192, target_tokens=8192)) as s:
        whole = next(s)
    assert sorted(pairs_of(updates[0]) + pairs_of(updates[1])) == sorted(pairs_of(whole))
    assert {update.target_tokens for update in updates} == {whole.target_tokens}
    assert sum(update.own_tokens for update in updates) == whole.own_tokens


def test_a_packed_row_is_made_as_large_as_the_share_needs(plan: UpdatePlan) -> None:
    rows = []
    for rank in range(2):
        schedule = ShareSchedule([(1, (0.25, 0.75))])
        portions = Portions(plan, schedule, rank=rank, layout="packed", capacity_tokens=16_384)
        part = portions.maybe_take(plan.update(Cursor()), step=1)
        assert part is not None
        rows.append(part.shape.target_tokens)
    assert rows[0] / rows[1] == pytest.approx(1 / 3, rel=0.1)


def test_new_shares_begin_at_their_step_and_the_stream_is_as_before_until_then(plan: UpdatePlan) -> None:
    shape = BatchShape(layout="padded", source_tokens=1000, target_tokens=1000)
    schedule = ShareSchedule()
    portions = Portions(plan, schedule, rank=0, layout="padded", capacity_tokens=1000)
    with BatchStream(
        plan, start=Cursor(), shape=shape, ranks=2, portions=portions, steps_done=10, depth=2
    ) as stream:
        first = next(stream)
        schedule.change((0.2, 0.8), first_step=15)
        updates = [first, *islice(stream, 6)]
    with BatchStream(plan, start=Cursor(), shape=shape, ranks=2) as stream:
        equal = list(islice(stream, 7))
    shares = [update.own_tokens / (update.source_tokens + update.target_tokens) for update in updates]
    assert shares == pytest.approx([0.5] * 4 + [0.2] * 3, abs=0.01)
    for mine, theirs in zip(updates[:4], equal, strict=False):
        for batch, other in zip(mine.batches, theirs.batches, strict=True):
            assert batch.labels.equal(other.labels)


def test_a_step_that_was_built_cannot_be_dealt_anew() -> None:
    schedule = ShareSchedule()
    schedule.at(12)
    with pytest.raises(ValueError, match="step 12 was dealt already"):
        schedule.change((0.2, 0.8), first_step=12)
    schedule.change((0.2, 0.8), first_step=13)


def test_a_schedule_survives_a_checkpoint_taken_before_its_shares_hold() -> None:
    schedule = ShareSchedule()
    for first, shares in ((28, (0.4, 0.6)), (48, (0.2, 0.8)), (68, EQUAL), (88, (0.3, 0.7))):
        schedule.change(shares, first_step=first)
    again = ShareSchedule.from_json(schedule.to_json(), ranks=2)
    assert [again.at(step) for step in (70, 87, 88, 1000)] == [EQUAL, EQUAL, (0.3, 0.7), (0.3, 0.7)]
    assert again.latest == (0.3, 0.7)


@pytest.mark.parametrize("shares", [[0.5, 0.5, 0.5], [0.5, 0.0], [0.5, -1.0], [0.5, float("nan")]])
def test_shares_of_other_ranks_or_without_sense_count_as_equal(shares: list[float]) -> None:
    schedule = ShareSchedule.from_json([{"first_step": 3, "shares": shares}], ranks=2)
    assert schedule.at(10) == EQUAL
