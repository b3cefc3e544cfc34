import hashlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.data.batches.epoch import GRANULES
from tandem.data.batches.plan import Cursor, Update, UpdatePlan
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]]


@pytest.fixture(scope="module")
def shards(build_shards: BuildShards, draw_lengths: Draw) -> ShardSet:
    return build_shards(draw_lengths(5000, seed=1), draw_lengths(2500, seed=2))


def read(plan: UpdatePlan, epoch: int = 0) -> list[Update]:
    return [plan.update(Cursor(epoch=epoch, update=number)) for number in range(plan.updates(epoch))]


@settings(max_examples=25)
@given(
    pairs=st.integers(1, 2500),
    budget=st.integers(1, 20_000),
    seed=st.integers(0, 2**60),
    epoch=st.integers(0, 5000),
)
def test_an_epoch_covers_every_pair_once_and_no_update_is_empty(
    build_shards: BuildShards, draw_lengths: Draw, pairs: int, budget: int, seed: int, epoch: int
) -> None:
    shards = build_shards(draw_lengths(pairs, seed=pairs))
    updates = read(UpdatePlan(shards, target_tokens=budget, seed=seed, pool_pairs=1024), epoch)
    assert sorted(np.concatenate([update.pairs for update in updates])) == list(range(pairs))
    assert min(len(update.pairs) for update in updates) >= 1


@settings(max_examples=20)
@given(budget=st.integers(2000, 30_000), seed=st.integers(0, 2**60))
def test_updates_have_equal_target_tokens(shards: ShardSet, budget: int, seed: int) -> None:
    plan = UpdatePlan(shards, target_tokens=budget, seed=seed)
    tokens = [int(update.target_tokens.sum()) for update in read(plan)]
    assert max(tokens) - min(tokens) <= 2 * GRANULES * shards.longest_target
    assert np.mean(tokens) == pytest.approx(budget, rel=0.5 / len(tokens) + 0.001)


def test_updates_have_equal_source_tokens(shards: ShardSet) -> None:
    tokens = [
        int(update.source_tokens.sum()) for update in read(UpdatePlan(shards, target_tokens=5000, seed=3))
    ]
    assert np.std(tokens) < 0.02 * np.mean(tokens)


def test_lengths_of_an_update_are_those_of_its_pairs(shards: ShardSet) -> None:
    update = UpdatePlan(shards, target_tokens=3000, seed=1, pool_pairs=2048).update(Cursor(epoch=2, update=5))
    source, target = shards.gather(update.pairs)
    assert update.source_tokens.tolist() == (source.lengths + 1).tolist()
    assert update.target_tokens.tolist() == (target.lengths + 1).tolist()
    assert update.granules.tolist()[0] == 0
    assert update.granules.tolist()[-1] == len(update.pairs)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**60), step=st.integers(0, 120), budget=st.integers(2000, 30_000))
def test_seeking_equals_reading(shards: ShardSet, seed: int, step: int, budget: int) -> None:
    walked, sought = (UpdatePlan(shards, target_tokens=budget, seed=seed, pool_pairs=2048) for _ in range(2))
    cursor = walked.cursor(0)
    for _ in range(step):
        walked.update(cursor)
        cursor = walked.next(cursor)
    assert sought.cursor(step) == cursor
    assert sought.update(sought.cursor(step)).pairs.tolist() == walked.update(cursor).pairs.tolist()


def test_seeking_builds_one_pool_only(shards: ShardSet, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    lengths = ShardSet.lengths

    def count(
        self: ShardSet, blocks: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint16]], ...]:
        asked.append(len(blocks))
        return lengths(self, blocks)

    monkeypatch.setattr(ShardSet, "lengths", count)
    plan = UpdatePlan(shards, target_tokens=2000, seed=1, pool_pairs=2048)
    plan.update(plan.cursor(plan.updates(0) + plan.updates(1) // 2))
    assert asked == [2]


def test_weights_repeat_and_thin_out_pairs(build_shards: BuildShards, draw_lengths: Draw) -> None:
    parts = [draw_lengths(4096, seed=number) for number in range(2)]
    plan = UpdatePlan(build_shards(*parts), target_tokens=5000, seed=1, weights=[2.0, 0.25])
    pairs = np.concatenate([update.pairs for update in read(plan)])
    assert np.bincount(pairs[pairs < 4096]).tolist() == [2] * 4096
    assert len(pairs[pairs >= 4096]) == 1024
    assert len(np.unique(pairs[pairs >= 4096])) == 1024


def test_epochs_without_a_block_are_passed_over(build_shards: BuildShards, draw_lengths: Draw) -> None:
    plan = UpdatePlan(build_shards(draw_lengths(100)), target_tokens=10**6, seed=1, weights=[0.25])
    assert [plan.updates(epoch) for epoch in range(8)].count(1) == 2
    first = plan.cursor(0)
    assert plan.next(first) == Cursor(epoch=first.epoch + 4, update=0) == plan.cursor(1)


def test_places_outside_an_epoch_are_index_errors(shards: ShardSet) -> None:
    plan = UpdatePlan(shards, target_tokens=5000, seed=1)
    for number in (-1, plan.updates(0)):
        with pytest.raises(IndexError):
            plan.update(Cursor(update=number))


def test_epochs_and_seeds_give_other_updates(shards: ShardSet) -> None:
    plans = [UpdatePlan(shards, target_tokens=5000, seed=seed) for seed in (1, 2)]
    firsts = [plans[0].update(Cursor()), plans[0].update(Cursor(epoch=1)), plans[1].update(Cursor())]
    assert len({tuple(sorted(update.pairs)) for update in firsts}) == 3


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_no_share_is_refused(shards: ShardSet, weight: float) -> None:
    with pytest.raises(TandemError, match="Corpus corpus 0 has the weight"):
        UpdatePlan(shards, target_tokens=100, seed=1, weights=[weight])


def test_a_set_without_pairs_and_a_budget_of_nothing_are_refused(
    build_shards: BuildShards, draw_lengths: Draw
) -> None:
    with pytest.raises(TandemError, match="no pair to train on"):
        UpdatePlan(build_shards(draw_lengths(0)), target_tokens=100, seed=1)
    with pytest.raises(TandemError, match="no pair to train on"):
        UpdatePlan(build_shards(draw_lengths(5)), target_tokens=100, seed=1, weights=[0.0])
    with pytest.raises(TandemError, match=r"batch\.target_tokens is 0"):
        UpdatePlan(build_shards(draw_lengths(5)), target_tokens=0, seed=1)


def test_a_seed_gives_the_same_updates_for_ever(build_shards: BuildShards) -> None:
    numbers = np.arange(6000)
    shards = build_shards((3 + numbers * 7919 % 41, 2 + numbers * 104_729 % 47))
    plan = UpdatePlan(shards, target_tokens=4000, seed=42, pool_pairs=3000, weights=[1.5])
    digest = hashlib.sha256()
    for epoch in range(2):
        for update in read(plan, epoch):
            digest.update(update.pairs.astype("<i8").tobytes())
            digest.update(update.granules.astype("<i8").tobytes())
    assert digest.hexdigest() == "6b839a433768565cb59df6036f01a057d98997e77599fcc43c499d9c0c19bb3c"


def test_planning_loads_no_torch() -> None:
    script = "import sys, tandem.data.batches.waste, tandem.data.batches.fill; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
