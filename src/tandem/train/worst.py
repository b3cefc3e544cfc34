"""The worst batch of a shape: as full as can be of sentences as long as can be."""

import numpy as np
import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.data.batches.fill import build_packed, build_padded
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import ShardSet

__all__ = ["build_worst"]


def build_worst(shards: ShardSet, shape: BatchShape) -> Batch[Tensor]:
    """A batch as full as can be of sentences as long as can be."""
    pairs = min(shape.source_tokens // shards.longest_source, shape.target_tokens // shards.longest_target)
    source, target = (
        _sentences(max(1, min(pairs, shape.segments)), longest - 1, shards.special.unk)
        for longest in (shards.longest_source, shards.longest_target)
    )
    if shape.layout == "padded":
        return build_padded(source, target, special=shards.special).map(torch.from_numpy)
    return build_packed(source, target, special=shards.special, shape=shape).map(torch.from_numpy)


def _sentences(count: int, pieces: int, piece: int) -> Ragged:
    return Ragged(ids=np.full(count * pieces, piece, np.int32), lengths=np.full(count, pieces, np.uint16))
