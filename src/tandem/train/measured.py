"""Sets whose loss is measured the same way each time: the valid text, and a fixed probe of the training pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.data.batches.deal import deal
from tandem.data.batches.fill import build_batches
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.shardset import ShardSet
from tandem.model import Transformer
from tandem.parallel.world import World
from tandem.train.capacity import Layout
from tandem.train.loss import summed_nll
from tandem.train.precision import Precision
from tandem.train.tokens import to_tokens

__all__ = ["MeasuredSet", "build_measured", "measure_loss"]

PORTION_TOKENS = 4096
"""Target tokens that the ranks share at a time: fixed, so that a probe is the same on any number of them."""
_MULTIPLE = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredSet:
    """A rank's share of a set, and the counts of the whole."""

    name: str
    batches: tuple[Batch[Tensor], ...]
    pairs: int
    target_tokens: int


def build_measured(
    name: str,
    shards: ShardSet,
    *,
    world: World,
    layout: Layout,
    seed: int,
    most_pairs: int | None = None,
) -> MeasuredSet:
    """All of a set, or portions of it drawn at random until there are enough pairs."""
    plan = UpdatePlan(shards, target_tokens=PORTION_TOKENS, seed=seed)
    shape = _shape(shards, layout)
    batches: list[Batch[Tensor]] = []
    pairs = tokens = 0
    cursor = plan.cursor(0)
    for number in range(plan.updates(cursor.epoch)):
        if most_pairs is not None and pairs >= most_pairs:
            break
        update = plan.update(plan.cursor(number))
        dealt = deal(update, world.size)
        mine = build_batches(shards, dealt, rank=world.rank, shape=shape)
        batches.extend(batch.map(torch.from_numpy) for batch in mine)
        pairs += len(update.pairs)
        tokens += int(update.target_tokens.sum())
    return MeasuredSet(name=name, batches=tuple(batches), pairs=pairs, target_tokens=tokens)


def measure_loss(measured: MeasuredSet, model: Transformer, *, world: World, precision: Precision) -> float:
    """Negative log-likelihood a target token, over all ranks: no dropout, no smoothing."""
    total = torch.zeros(1, dtype=torch.float64, device=world.device)
    model.eval()
    with torch.inference_mode():
        for batch in _filled(measured, world.device):
            world.pulse.beat()
            source, target = to_tokens(batch)
            with precision.autocast():
                states = model(source, target)
                total += summed_nll(states, model.output_weight, batch.labels, pad=model.pad)
    model.train()
    world.sum(total)
    return float(total) / measured.target_tokens


def _filled(measured: MeasuredSet, device: torch.device) -> Iterator[Batch[Tensor]]:
    for batch in measured.batches:
        if batch.pairs:
            yield batch.map(lambda array: array.to(device, non_blocking=True))


def _shape(shards: ShardSet, layout: Layout) -> BatchShape:
    """Held-out sentences are never dropped for their length, so a set's own longest ones must fit."""
    longest = max(shards.longest_source, shards.longest_target)
    capacity = ceil(max(PORTION_TOKENS, longest) / _MULTIPLE) * _MULTIPLE
    return BatchShape(layout=layout, source_tokens=capacity, target_tokens=capacity)
