from collections.abc import Callable

import numpy as np
import pytest

from tandem.data.batches.deal import deal
from tandem.data.batches.fill import build_batches
from tandem.data.batches.plan import Cursor, UpdatePlan
from tandem.data.batches.shape import BatchShape, fit_packed
from tandem.data.batches.waste import padding_share
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]]


@pytest.fixture(scope="module")
def plan(build_shards: BuildShards, draw_lengths: Draw) -> UpdatePlan:
    return UpdatePlan(build_shards(draw_lengths(4000)), target_tokens=9000, seed=1)


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_share_is_that_of_the_arrays_themselves(plan: UpdatePlan, ranks: int) -> None:
    found = padding_share(plan, capacity_tokens=2048, ranks=ranks)
    padded = BatchShape(layout="padded", source_tokens=2048, target_tokens=2048)
    measured = []
    for shape in (padded, fit_packed(plan, ranks=ranks, capacity_tokens=2048)):
        places = tokens = 0
        for number in range(plan.updates(0)):
            update = plan.update(Cursor(update=number))
            tokens += int(update.source_tokens.sum() + update.target_tokens.sum())
            dealt = deal(update, ranks)
            for rank in range(ranks):
                batches = build_batches(plan.shards, dealt, rank=rank, shape=shape)
                places += sum(batch.source.size + batch.labels.size for batch in batches)
        measured.append(1 - tokens / places)
    assert [found.padded, found.packed] == pytest.approx(measured)
    assert found.updates == plan.updates(0)
    assert found.mean_pairs == 4000 / plan.updates(0)


def test_a_sample_measures_so_many_updates(plan: UpdatePlan) -> None:
    assert padding_share(plan, capacity_tokens=2048, sample=3).updates == 3


def test_sentences_of_one_length_need_no_padding(build_shards: BuildShards) -> None:
    same = np.full(1000, 9)
    plan = UpdatePlan(build_shards((same, same)), target_tokens=1000, seed=1)
    assert padding_share(plan, capacity_tokens=1024).padded == 0


def test_a_capacity_under_the_longest_sentence_is_refused(plan: UpdatePlan) -> None:
    with pytest.raises(TandemError, match="raise its capacity"):
        padding_share(plan, capacity_tokens=64)
