"""The shape of micro-batches, and how the rows of a deal are cut to fit it, alike on every rank."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.deal import Deal, deal
from tandem.data.batches.plan import UpdatePlan
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

__all__ = ["BatchShape", "check_shape", "cut", "fit_packed", "fit_row"]

_TOKENS_A_SEGMENT = 2
"""No text has shorter sentences on average, end marks counted: rows are full before segments run out."""
_MULTIPLE = 64
_SLACK = 1.02
"""Of the mean, for a part of an update: the parts are cut where they are full."""
_SPARE = 1.002
"""Of the largest share in the sample."""
_SAMPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShape:
    """What a micro-batch holds on each side: tokens and their padding, or a packed row of that size."""

    layout: Literal["padded", "packed"]
    source_tokens: int
    target_tokens: int

    @property
    def segments(self) -> int:
        """The most sentences that a packed row holds."""
        return max(1, min(self.source_tokens, self.target_tokens) // _TOKENS_A_SEGMENT)


def check_shape(shape: BatchShape, shards: ShardSet) -> None:
    """Refuse a shape that cannot hold the longest pair of a set."""
    if shards.longest_source > shape.source_tokens or shards.longest_target > shape.target_tokens:
        raise TandemError(
            f"{shards.folder} has sentences of {shards.longest_source} source and {shards.longest_target} "
            f"target tokens, but a batch holds {shape.source_tokens} and {shape.target_tokens}: "
            "raise its capacity, or prepare the data with fewer pieces a sentence."
        )


def fit_packed(plan: UpdatePlan, *, ranks: int, capacity_tokens: int) -> BatchShape:
    """The packed shape, within a capacity, that an update of this plan fills best on so many ranks."""
    # Room for nearly every update: one that needs a second batch costs twice the time.
    most = [tokens * _SPARE for tokens in _largest_shares(plan, ranks)]
    return fit_row(plan, most=most, parts=ranks, capacity_tokens=capacity_tokens)


def fit_row(plan: UpdatePlan, *, most: Sequence[float], parts: float, capacity_tokens: int) -> BatchShape:
    """The packed shape for a rank that gets one of so many parts of an update, and at most so many tokens a side."""
    wanted = list(most)
    batches = ceil(max(wanted) / capacity_tokens)
    if batches > 1:
        wanted = [tokens * _SLACK / parts / batches for tokens in plan.mean_tokens()]
    longest = plan.shards.longest_source, plan.shards.longest_target
    source, target = (
        min(ceil(max(tokens, least) / _MULTIPLE) * _MULTIPLE, capacity_tokens)
        for tokens, least in zip(wanted, longest, strict=True)
    )
    return BatchShape(layout="packed", source_tokens=source, target_tokens=target)


def _largest_shares(plan: UpdatePlan, ranks: int) -> tuple[int, int]:
    """Source and target tokens of the largest share that a rank gets of one of the first updates."""
    first = plan.cursor(0)
    largest = np.zeros(2, np.int64)
    for number in range(min(plan.updates(first.epoch), _SAMPLE)):
        dealt = deal(plan.update(replace(first, update=number)), ranks)
        largest = np.maximum(largest, [side.sum(axis=0).max() for side in dealt.tokens()])
    return int(largest[0]), int(largest[1])


def cut(dealt: Deal, shape: BatchShape) -> list[NDArray[np.int64]]:
    """The rows of each micro-batch; every rank has the same number of them."""
    return _cut_padded(dealt, shape) if shape.layout == "padded" else _cut_packed(dealt, shape)


def _cut_padded(dealt: Deal, shape: BatchShape) -> list[NDArray[np.int64]]:
    """As many rows as fit, never over the end of a granule: that keeps lengths alike."""
    longest = [side.max(axis=1).tolist() for side in dealt.tokens()]
    ends = set(dealt.granules.tolist())
    bounds = [0]
    source = target = 0
    for row, (row_source, row_target) in enumerate(zip(*longest, strict=True)):
        source, target = max(source, row_source), max(target, row_target)
        pairs = row + 1 - bounds[-1]
        full = pairs * source > shape.source_tokens or pairs * target > shape.target_tokens
        if pairs > 1 and (full or row in ends):
            bounds.append(row)
            source, target = row_source, row_target
    return np.split(np.arange(len(dealt.rows)), bounds[1:])


def _cut_packed(dealt: Deal, shape: BatchShape) -> list[NDArray[np.int64]]:
    """As many rows as fit, drawn evenly from all granules: that fills both sides alike."""
    order = _interleave(dealt.granules)
    totals = [np.cumsum(side[order], axis=0) for side in dealt.tokens()]
    capacities = shape.source_tokens, shape.target_tokens
    batches: list[NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        most = len(order)
        for total, capacity in zip(totals, capacities, strict=True):
            before = total[start - 1] if start else 0
            fits = (total - before <= capacity).all(axis=1)
            most = min(most, int(np.count_nonzero(fits)))
        most = min(most, start + shape.segments)
        if most == start:
            raise ValueError("a pair is larger than the shape, which check_shape would have said")
        batches.append(order[start:most])
        start = most
    return batches


def _interleave(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    sizes = np.diff(bounds)
    place = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
    return np.argsort((place + 0.5) / np.repeat(sizes, sizes), kind="stable")
