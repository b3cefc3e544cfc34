"""A packed batch in one block of memory, which goes to a device in one copy."""

from itertools import accumulate
from typing import Any

import torch
from numpy.typing import NDArray

from tandem.data.batches.batch import PackedBatch

__all__ = ["ALIGNMENT", "in_one_block"]

ALIGNMENT = 16
"""Numbers: every field begins at a multiple of 64 bytes."""


def in_one_block(batch: PackedBatch[NDArray[Any]], *, pinned: bool) -> PackedBatch[torch.Tensor]:
    """The batch as views of one int32 tensor, field after field; batches of one shape lie alike."""
    sizes: list[int] = []
    batch.map(lambda array: sizes.append(-(-array.size // ALIGNMENT) * ALIGNMENT))
    starts = iter(accumulate(sizes, initial=0))
    block = torch.empty(sum(sizes), dtype=torch.int32, pin_memory=pinned)
    held = block.numpy()

    def move(array: NDArray[Any]) -> torch.Tensor:
        start = next(starts)
        place = slice(start, start + array.size)
        held[place] = array.reshape(-1)
        return block[place].view(array.shape)

    return batch.map(move)
