import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tandem.data.batches.deal import deal
from tandem.data.batches.plan import Cursor, UpdatePlan
from tandem.data.batches.waste import padding_share
from tandem.data.shards.shardset import ShardSet

PIECES_A_WORD = 1.3


def count_pieces(path: Path) -> NDArray[np.int64]:
    with lzma.open(path, "rb") as file:
        words = np.fromiter((len(line.split()) for line in file), np.int64)
    pieces: NDArray[np.int64] = np.rint(words * PIECES_A_WORD).astype(np.int64)
    return pieces


@pytest.fixture(scope="module")
def plan(real_data: Path, build_shards: Callable[..., ShardSet]) -> UpdatePlan:
    source, target = (count_pieces(real_data / "europarl" / f"train.{side}.xz") for side in ("en", "de"))
    return UpdatePlan(build_shards((source, target)), target_tokens=25_000, seed=1)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_ranks_differ_by_less_than_two_percent_of_an_update(plan: UpdatePlan, ranks: int) -> None:
    for number in range(plan.updates(0)):
        for side in deal(plan.update(Cursor(update=number)), ranks).tokens():
            loads = side.sum(axis=0)
            assert loads.max() - loads.min() < 0.02 * loads.sum()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_less_than_five_percent_of_batches_is_padding(plan: UpdatePlan, ranks: int) -> None:
    share = padding_share(plan, capacity_tokens=4096, ranks=ranks)
    assert share.padded < 0.05
    assert share.packed < 0.05


def test_updates_hold_their_budget_within_one_percent(plan: UpdatePlan) -> None:
    updates = [plan.update(Cursor(update=number)) for number in range(plan.updates(0))]
    for tokens in ([u.target_tokens.sum() for u in updates], [u.source_tokens.sum() for u in updates]):
        assert np.ptp(tokens) < 0.01 * np.mean(tokens)
    assert np.mean([u.target_tokens.sum() for u in updates]) == pytest.approx(25_000, rel=0.002)
