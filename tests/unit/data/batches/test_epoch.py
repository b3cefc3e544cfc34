import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.batches.epoch import Epoch, build_epoch
from tandem.data.shards.index import Blocks


def blocks(*sizes: int) -> Blocks:
    """Blocks of 1,024 pairs, so many for each corpus."""
    corpus = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    full = np.full(len(corpus), 1024, np.uint32)
    return Blocks(
        part=corpus,
        corpus=corpus,
        pairs=full,
        source_tokens=full * np.uint32(20),
        target_tokens=full * np.uint32(30),
        first_pair=np.arange(len(corpus) + 1) * 1024,
    )


def build(table: Blocks, *weights: float, epoch: int = 0, seed: int = 1, pool_pairs: int = 2**20) -> Epoch:
    return build_epoch(table, weights, seed=seed, epoch=epoch, target_tokens=25_000, pool_pairs=pool_pairs)


@given(seed=st.integers(0, 2**40), epoch=st.integers(0, 10**6), count=st.integers(1, 40))
def test_weight_one_takes_every_block_once(seed: int, epoch: int, count: int) -> None:
    chosen = build(blocks(count), 1.0, seed=seed, epoch=epoch).blocks
    assert sorted(chosen) == list(range(count))


@given(weight=st.floats(0.05, 3.5), seed=st.integers(0, 1000))
def test_a_weight_is_kept_in_each_epoch_and_for_each_block(weight: float, seed: int) -> None:
    table = blocks(20)
    times = np.array(
        [
            np.bincount(build(table, weight, seed=seed, epoch=epoch).blocks, minlength=20)
            for epoch in range(12)
        ]
    )
    assert np.all(np.abs(times.sum(axis=1) - 20 * weight) <= 1)
    assert np.all(np.abs(times.sum(axis=0) - 12 * weight) <= 1)


def test_each_corpus_has_its_own_weight() -> None:
    chosen = build(blocks(10, 10, 10), 2.0, 0.5, 0.0).blocks
    assert [int((chosen // 10 == corpus).sum()) for corpus in range(3)] == [20, 5, 0]


def test_epochs_and_seeds_order_blocks_differently() -> None:
    table = blocks(30)
    orders = [build(table, 1.0, epoch=0), build(table, 1.0, epoch=1), build(table, 1.0, seed=2)]
    assert len({tuple(epoch.blocks) for epoch in orders}) == 3


def test_pools_are_as_equal_as_blocks_allow() -> None:
    epoch = build(blocks(103), 1.0, pool_pairs=10 * 1024)
    sizes = np.diff(epoch.first_block)
    assert len(sizes) == 10
    assert sizes.sum() == 103
    assert sizes.max() - sizes.min() <= 1


def test_updates_are_the_nearest_whole_number_of_budgets() -> None:
    epoch = build(blocks(103), 1.0)
    assert epoch.first_update.tolist() == [0, round(103 * 1024 * 30 / 25_000)]


def test_an_epoch_without_a_block_has_no_update() -> None:
    assert build(blocks(1), 0.0).first_update.tolist() == [0]


@pytest.mark.parametrize("update", [0, 1, 17, 40])
def test_an_update_is_found_in_its_pool(update: int) -> None:
    epoch = build(blocks(40), 1.0, pool_pairs=4 * 1024)
    pool, place = epoch.find_pool(update)
    assert epoch.first_update[pool] + place == update
    assert 0 <= place < np.diff(epoch.first_update)[pool]
