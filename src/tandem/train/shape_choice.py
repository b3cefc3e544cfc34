"""The shape of a run's micro-batches: that of its checkpoint, one that the user orders, or what fits into memory."""

from collections.abc import Mapping
from typing import Any

import torch

from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.parallel.world import World
from tandem.runlog.event import BatchFitted
from tandem.runlog.writer import RunLog
from tandem.train.capacity import build_shape, choose_capacity, hold_longest, layout_for, maybe_same_shape
from tandem.train.division import maybe_same_capacity
from tandem.train.fit import find_capacity
from tandem.train.learner import Learner
from tandem.train.way import Way

__all__ = ["BATCHES", "choose_shape"]

BATCHES = "batches"
"""What a checkpoint calls the shape."""


def choose_shape(
    recipe: Recipe,
    world: World,
    plan: UpdatePlan,
    *,
    learner: Learner,
    way: Way,
    facts: Mapping[str, Any],
    log: RunLog,
    batch_tokens: int | None = None,
    fit: bool = False,
) -> tuple[BatchShape, int]:
    """Return the shape while all ranks get equal shares, and the tokens a side that this rank could hold.

    `facts` are those of a checkpoint; `fit` finds the largest micro-batch by trying.
    """
    is_fused = way.name != "plain"
    layout = layout_for(recipe, world.device, learner.precision.name, fused=is_fused)
    same = maybe_same_shape(facts.get(BATCHES, {}), world)
    if same is not None and same.layout == layout and batch_tokens is None:
        return same, maybe_same_capacity(facts, world) or max(same.source_tokens, same.target_tokens)
    tokens = batch_tokens or choose_capacity(recipe, world.device, fused=is_fused)
    if fit:
        tokens = find_capacity(way.learn, plan.shards, layout, buckets=learner.buckets)
    shape = build_shape(plan, layout=layout, world=world, capacity_tokens=tokens)
    if fit:
        memory = torch.cuda.max_memory_allocated(world.device)
        log.log(
            BatchFitted(
                layout=shape.layout,
                source_tokens=shape.source_tokens,
                target_tokens=shape.target_tokens,
                memory_bytes=memory,
            )
        )
    return shape, hold_longest(plan, tokens)
