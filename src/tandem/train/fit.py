"""The largest micro-batch that a GPU holds, found by trying the worst one."""

from collections.abc import Callable
from math import ceil

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.estimate.memory import MOST_TOKENS
from tandem.parallel.buckets import GradientBuckets
from tandem.train.capacity import Layout
from tandem.train.passes import Pass
from tandem.train.worst import build_worst

__all__ = ["find_capacity", "fits", "largest_that"]

STEP_TOKENS = 256
LARGEST_TOKENS = MOST_TOKENS
_SPARE = 0.9
"""Of what fitted: memory is in more pieces later in a run than now."""


def find_capacity(learn: Pass, shards: ShardSet, layout: Layout, *, buckets: GradientBuckets) -> int:
    """Tokens a side of the largest batch that fits: doubled until it fails, then halved in between."""
    if buckets.slots.device.type != "cuda":
        raise TandemError(
            "--fit looks for the limit of a GPU's memory, but this run is on CPUs: leave it out."
        )
    longest = max(shards.longest_source, shards.longest_target)
    least = ceil(longest / STEP_TOKENS) * STEP_TOKENS

    def tried(tokens: int) -> bool:
        return fits(learn, build_worst(shards, _shape(layout, tokens)), buckets=buckets)

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


def fits(learn: Pass, batch: Batch[Tensor], *, buckets: GradientBuckets) -> bool:
    """Whether memory suffices to learn from this batch; gradients are cleared afterwards."""
    try:
        learn(batch, seed=0, factor=torch.ones((), device=buckets.slots.device), last=False)
    except torch.OutOfMemoryError:
        return False
    finally:
        buckets.clear()
        torch.cuda.empty_cache()
    return True


def _shape(layout: Layout, tokens: int) -> BatchShape:
    return BatchShape(layout=layout, source_tokens=tokens, target_tokens=tokens)
