"""The largest micro-batch that a GPU holds, found by trying the worst one."""

from collections.abc import Callable
from math import ceil

import numpy as np
import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.data.batches.fill import build_packed, build_padded
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.train.capacity import Layout
from tandem.train.learner import Learner
from tandem.train.loss import summed_loss
from tandem.train.tokens import to_tokens

__all__ = ["build_worst", "find_capacity", "largest_that"]

STEP_TOKENS = 256
LARGEST_TOKENS = 131_072
_SPARE = 0.9
"""Of what fitted: memory is in more pieces later in a run than now."""


def find_capacity(learner: Learner, shards: ShardSet, layout: Layout, *, device: torch.device) -> int:
    """Tokens a side of the largest batch that fits: doubled until it fails, then halved in between."""
    if device.type != "cuda":
        raise TandemError(
            "--fit looks for the limit of a GPU's memory, but this run is on CPUs: leave it out."
        )
    longest = max(shards.longest_source, shards.longest_target)
    least = ceil(longest / STEP_TOKENS) * STEP_TOKENS

    def tried(tokens: int) -> bool:
        return fits(learner, build_worst(shards, _shape(layout, tokens)), device=device)

    return largest_that(tried, least=least)


def largest_that(fits: Callable[[int], bool], *, least: int) -> int:
    """The largest number of tokens for which it holds, less a reserve, in steps of STEP_TOKENS."""
    good, bad = 0, LARGEST_TOKENS + STEP_TOKENS
    tokens = least
    while tokens < bad:
        if not fits(tokens):
            bad = tokens
        else:
            good, tokens = tokens, tokens * 2
    if not good:
        raise TandemError(
            f"A batch of {least:,} tokens, which the longest sentences need, does not fit into the GPU's memory: "
            "take a smaller model, or a smaller subword.max_pieces."
        )
    while bad - good > STEP_TOKENS:
        middle = (good + bad) // 2 // STEP_TOKENS * STEP_TOKENS
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return max(least, int(good * _SPARE) // STEP_TOKENS * STEP_TOKENS)


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


def fits(learner: Learner, batch: Batch[Tensor], *, device: torch.device) -> bool:
    """Whether memory suffices to learn from this batch; gradients are cleared afterwards."""
    model = learner.model
    try:
        held = batch.map(lambda tensor: tensor.to(device))
        with learner.precision.autocast():
            states = model(*to_tokens(held))
            loss, _ = summed_loss(states, model.output_weight, held.labels, pad=model.pad, smoothing=0.1)
        torch.autograd.backward(loss)
    except torch.OutOfMemoryError:
        return False
    finally:
        learner.buckets.clear()
        torch.cuda.empty_cache()
    return True


def _shape(layout: Layout, tokens: int) -> BatchShape:
    return BatchShape(layout=layout, source_tokens=tokens, target_tokens=tokens)


def _sentences(count: int, pieces: int, piece: int) -> Ragged:
    return Ragged(ids=np.full(count * pieces, piece, np.int32), lengths=np.full(count, pieces, np.uint16))
