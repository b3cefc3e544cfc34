"""How much of real batches is padding."""

from dataclasses import dataclass

import numpy as np

from tandem.data.batches.deal import HOLE, Deal, deal
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape, check_shape, cut, fit_packed

__all__ = ["PaddingShare", "padding_share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddingShare:
    """Share of the places in batches that hold no token, source and target together, from 0 to 1."""

    padded: float
    packed: float
    updates: int
    """Measured, from the start of the first epoch."""
    mean_pairs: float
    """In an update."""


def padding_share(
    plan: UpdatePlan, *, capacity_tokens: int, ranks: int = 1, sample: int = 64
) -> PaddingShare:
    """Measure both layouts over the first updates of a plan, at most `sample` of them."""
    shapes = (
        BatchShape(layout="padded", source_tokens=capacity_tokens, target_tokens=capacity_tokens),
        fit_packed(plan, ranks=ranks, capacity_tokens=capacity_tokens),
    )
    for shape in shapes:
        check_shape(shape, plan.shards)
    places = [0, 0]
    tokens = pairs = 0
    cursor = plan.cursor(0)
    count = min(sample, plan.updates(cursor.epoch))
    for _ in range(count):
        update = plan.update(cursor)
        dealt = deal(update, ranks)
        tokens += int(update.source_tokens.sum() + update.target_tokens.sum())
        pairs += len(update.pairs)
        for layout, shape in enumerate(shapes):
            places[layout] += _count_places(dealt, shape)
        cursor = plan.next(cursor)
    padded, packed = (1 - tokens / held for held in places)
    return PaddingShare(padded=padded, packed=packed, updates=count, mean_pairs=pairs / count)


def _count_places(dealt: Deal, shape: BatchShape) -> int:
    batches = cut(dealt, shape)
    if shape.layout == "packed":
        return len(batches) * dealt.ranks * (shape.source_tokens + shape.target_tokens)
    source, target = dealt.tokens()
    total = 0
    for rows in batches:
        pairs = np.count_nonzero(dealt.rows[rows] != HOLE, axis=0)
        total += int((pairs * (source[rows].max(axis=0) + target[rows].max(axis=0))).sum())
    return total
