from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

from tandem.data.batches.deal import deal
from tandem.data.batches.plan import Cursor, UpdatePlan
from tandem.data.batches.shape import BatchShape, check_shape, cut, fit_packed
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]]


@pytest.fixture(scope="module")
def plan(build_shards: BuildShards, draw_lengths: Draw) -> UpdatePlan:
    return UpdatePlan(build_shards(draw_lengths(12_000)), target_tokens=12_000, seed=1)


def shape(layout: Literal["padded", "packed"], tokens: int) -> BatchShape:
    return BatchShape(layout=layout, source_tokens=tokens, target_tokens=tokens)


@pytest.mark.parametrize("layout", ["padded", "packed"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_every_row_is_in_one_batch(plan: UpdatePlan, layout: Literal["padded", "packed"], ranks: int) -> None:
    dealt = deal(plan.update(Cursor()), ranks)
    batches = cut(dealt, shape(layout, 1000))
    assert sorted(np.concatenate(batches)) == list(range(len(dealt.rows)))
    assert min(map(len, batches)) > 0


def test_a_padded_batch_stays_inside_its_granule(plan: UpdatePlan) -> None:
    dealt = deal(plan.update(Cursor()), 2)
    for rows in cut(dealt, shape("padded", 100_000)):
        inside = [bound for bound in dealt.granules.tolist() if rows[0] < bound <= rows[-1]]
        assert inside == []


def test_a_packed_row_has_no_more_sentences_than_segments(build_shards: BuildShards) -> None:
    short = np.ones(500, np.int64)
    plan = UpdatePlan(build_shards((short, short)), target_tokens=1000, seed=1)
    batches = cut(deal(plan.update(Cursor()), 1), shape("packed", 400))
    assert max(map(len, batches)) == shape("packed", 400).segments == 200


@pytest.mark.parametrize(("source", "target"), [(80, 200), (200, 80)])
def test_a_shape_too_small_for_the_longest_pair_is_refused(
    plan: UpdatePlan, source: int, target: int
) -> None:
    small = BatchShape(layout="packed", source_tokens=source, target_tokens=target)
    assert (plan.shards.longest_source, plan.shards.longest_target) == (81, 81)
    with pytest.raises(TandemError, match="has sentences of 81 source and 81 target tokens"):
        check_shape(small, plan.shards)
    check_shape(shape("packed", 81), plan.shards)


def test_cutting_to_a_shape_too_small_ends(plan: UpdatePlan) -> None:
    with pytest.raises(ValueError, match="larger than the shape"):
        cut(deal(plan.update(Cursor()), 1), shape("packed", 8))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_fitted_packed_shape_needs_no_more_batches_than_the_capacity(plan: UpdatePlan, ranks: int) -> None:
    fitted = fit_packed(plan, ranks=ranks, capacity_tokens=4096)
    assert fitted.layout == "packed"
    assert max(fitted.source_tokens, fitted.target_tokens) <= 4096
    for number in range(plan.updates(0)):
        dealt = deal(plan.update(Cursor(update=number)), ranks)
        assert len(cut(dealt, fitted)) <= len(cut(dealt, shape("packed", 4096))) + 1


def test_a_fitted_packed_shape_holds_the_longest_pair(build_shards: BuildShards) -> None:
    lengths = np.array([2] * 500 + [700])
    plan = UpdatePlan(build_shards((lengths, lengths)), target_tokens=100, seed=1)
    check_shape(fit_packed(plan, ranks=1, capacity_tokens=1024), plan.shards)
