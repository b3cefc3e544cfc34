import threading
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tandem.data.batches.batch import Batch
from tandem.data.batches.plan import Cursor, Update, UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import BatchStream, UpdateBatches
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

BuildShards = Callable[..., ShardSet]
Draw = Callable[..., tuple[NDArray[np.int64], ...]]
PADDED = BatchShape(layout="padded", source_tokens=1000, target_tokens=1000)
PACKED = BatchShape(layout="packed", source_tokens=1000, target_tokens=1000)


@pytest.fixture(scope="module")
def plan(build_shards: BuildShards, draw_lengths: Draw) -> UpdatePlan:
    return UpdatePlan(build_shards(draw_lengths(1500)), target_tokens=4000, seed=1)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def tensors(batch: Batch[torch.Tensor]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    batch.map(found.append)
    return found


def contents(update: UpdateBatches) -> list[list[object]]:
    return [tensor.tolist() for batch in update.batches for tensor in tensors(batch)]


def take(stream: BatchStream, count: int) -> list[UpdateBatches]:
    with stream:
        return list(islice(stream, count))


def test_updates_come_in_order_over_the_end_of_an_epoch(plan: UpdatePlan) -> None:
    last = plan.updates(0) - 1
    updates = take(BatchStream(plan, start=Cursor(update=last - 1), shape=PADDED), 4)
    places = [(update.cursor.epoch, update.cursor.update) for update in updates]
    assert places == [(0, last - 1), (0, last), (1, 0), (1, 1)]


@pytest.mark.parametrize("shape", [PADDED, PACKED], ids=["padded", "packed"])
def test_a_stream_begun_later_goes_on_with_the_same_tensors(plan: UpdatePlan, shape: BatchShape) -> None:
    first = take(BatchStream(plan, start=Cursor(), shape=shape, rank=1, ranks=2), 6)
    later = take(BatchStream(plan, start=first[3].cursor, shape=shape, rank=1, ranks=2, depth=1), 3)
    assert [contents(update) for update in later] == [contents(update) for update in first[3:]]


def test_counts_are_of_the_whole_update_on_every_rank(plan: UpdatePlan) -> None:
    shares = [
        take(BatchStream(plan, start=Cursor(), shape=PACKED, rank=rank, ranks=3), 1)[0] for rank in range(3)
    ]
    update = plan.update(Cursor())
    assert {share.target_tokens for share in shares} == {int(update.target_tokens.sum())}
    assert {share.source_tokens for share in shares} == {int(update.source_tokens.sum())}
    assert {share.pairs for share in shares} == {len(update.pairs)}
    assert sum(batch.target_tokens for share in shares for batch in share.batches) == shares[0].target_tokens


def test_tensors_are_int32(plan: UpdatePlan) -> None:
    (update,) = take(BatchStream(plan, start=Cursor(), shape=PADDED), 1)
    assert {tensor.dtype for batch in update.batches for tensor in tensors(batch)} == {torch.int32}


def test_an_error_in_the_thread_reaches_the_reader(plan: UpdatePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    update = UpdatePlan.update

    def fail(self: UpdatePlan, cursor: Cursor) -> Update:
        if cursor.update == 2:
            raise TandemError("the disk is gone")
        return update(self, cursor)

    monkeypatch.setattr(UpdatePlan, "update", fail)
    stream = BatchStream(plan, start=Cursor(), shape=PADDED)
    assert [next(stream).cursor.update for _ in range(2)] == [0, 1]
    with pytest.raises(TandemError, match="the disk is gone"):
        next(stream)
    assert list(stream) == []


def test_no_more_than_the_depth_is_made_ahead(plan: UpdatePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    update = UpdatePlan.update

    def note(self: UpdatePlan, cursor: Cursor) -> Update:
        made.append(cursor.update)
        return update(self, cursor)

    monkeypatch.setattr(UpdatePlan, "update", note)
    with BatchStream(plan, start=Cursor(), shape=PADDED, depth=3) as stream:
        next(stream)
    assert set(made) <= {0, 1, 2, 3}


def test_a_closed_stream_has_ended(plan: UpdatePlan) -> None:
    stream = BatchStream(plan, start=Cursor(), shape=PADDED)
    stream.close()
    stream.close()
    assert list(stream) == []


def test_a_pair_that_fits_no_batch_is_said_at_once(plan: UpdatePlan) -> None:
    small = BatchShape(layout="packed", source_tokens=20, target_tokens=20)
    with pytest.raises(TandemError, match="raise its capacity"):
        BatchStream(plan, start=Cursor(), shape=small)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_for_a_gpu_are_in_pinned_memory(plan: UpdatePlan) -> None:
    (update,) = take(BatchStream(plan, start=Cursor(), shape=PACKED, device="cuda"), 1)
    assert all(tensor.is_pinned() for batch in update.batches for tensor in tensors(batch))
    for batch in update.batches:
        assert len({tensor.untyped_storage().data_ptr() for tensor in tensors(batch)}) == 1
    moved = [batch.map(lambda tensor: tensor.to("cuda", non_blocking=True)) for batch in update.batches]
    torch.cuda.synchronize()
    for batch, there in zip(update.batches, moved, strict=True):
        assert torch.equal(there.labels.cpu(), batch.labels)
