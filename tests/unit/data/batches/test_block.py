import numpy as np
import torch
from numpy.typing import NDArray

from tandem.data.batches.batch import PackedBatch
from tandem.data.batches.block import ALIGNMENT, in_one_block
from tandem.data.batches.fill import build_packed
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.special import SpecialIds

SHAPE = BatchShape(layout="packed", source_tokens=203, target_tokens=150)


def draw(pairs: int) -> PackedBatch[NDArray[np.int32]]:
    generator = np.random.default_rng()
    sides = []
    for _ in range(2):
        lengths = generator.integers(0, 12, pairs)
        sides.append(Ragged(ids=generator.integers(4, 99, lengths.sum()), lengths=lengths))
    return build_packed(*sides, special=SpecialIds(), shape=SHAPE)


def fields(batch: PackedBatch[torch.Tensor]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    batch.map(found.append)
    return found


def test_a_batch_in_one_block_holds_the_same_numbers() -> None:
    batch = draw(9)
    moved = in_one_block(batch, pinned=False)
    for tensor, expected in zip(fields(moved), fields(batch.map(torch.from_numpy)), strict=True):
        assert tensor.dtype == torch.int32
        assert tensor.is_contiguous()
        assert torch.equal(tensor, expected)
    assert (moved.pairs, moved.target_tokens) == (batch.pairs, batch.target_tokens)
    assert (moved.longest_source, moved.longest_target) == (batch.longest_source, batch.longest_target)


def test_fields_follow_one_another_in_one_storage() -> None:
    tensors = fields(in_one_block(draw(9), pinned=False))
    storage = tensors[0].untyped_storage()
    end = 0
    for tensor in tensors:
        assert tensor.untyped_storage().data_ptr() == storage.data_ptr()
        start = int(tensor.storage_offset())
        assert start % ALIGNMENT == 0
        assert end <= start < end + ALIGNMENT
        end = start + tensor.numel()
    assert 4 * end <= storage.nbytes() < 4 * (end + ALIGNMENT)


def test_batches_of_one_shape_lie_alike() -> None:
    few, many = (in_one_block(draw(pairs), pinned=False) for pairs in (0, 12))
    for first, second in zip(fields(few), fields(many), strict=True):
        assert first.storage_offset() == second.storage_offset()
    assert few.source.untyped_storage().nbytes() == many.source.untyped_storage().nbytes()


def test_a_copy_of_the_storage_is_a_copy_of_the_batch() -> None:
    batch = draw(5)
    here, there = in_one_block(draw(8), pinned=False), in_one_block(batch, pinned=False)
    here.source.untyped_storage().copy_(there.source.untyped_storage())
    for tensor, expected in zip(fields(here), fields(batch.map(torch.from_numpy)), strict=True):
        assert torch.equal(tensor, expected)
