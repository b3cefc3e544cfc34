"""What a rank says of itself when it starts."""

import platform
import sys

import numpy as np
import torch

from tandem import __version__
from tandem.artefact import fingerprint
from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.prepared import Prepared
from tandem.data.shards.part import BLOCK_PAIRS
from tandem.data.shards.shardset import ShardSet
from tandem.estimate.flops import Lengths, training_flops
from tandem.model import parameter_count
from tandem.parallel.world import World
from tandem.runlog.event import BatchesPlanned, RunStarted, TrainingStarted
from tandem.telemetry.peak import name_device
from tandem.train.capacity import Layout
from tandem.train.learner import Learner
from tandem.train.resume import Start
from tandem.train.schedule import describe_schedule
from tandem.train.way import Way

__all__ = ["batches_planned", "recipe_mark", "run_started", "training_started"]

MOST_COUNTED = 1_000_000
"""Pairs whose lengths are looked at, so that the start of a run stays instant."""


def run_started(recipe: Recipe, world: World) -> RunStarted:
    """A process began to work."""
    return RunStarted(
        run=recipe.name,
        tandem=__version__,
        command=tuple(sys.argv),
        recipe=recipe_mark(recipe),
        world_size=world.size,
        host=platform.node(),
        python=platform.python_version(),
        torch=str(torch.__version__),
    )


def training_started(
    recipe: Recipe,
    world: World,
    *,
    start: Start,
    checkpoint_hosts: tuple[str, ...],
    learner: Learner,
    plan: UpdatePlan,
    shape: BatchShape,
    way: Way,
) -> TrainingStarted:
    """All is built, and the first step comes."""
    max_steps, state = recipe.train.max_steps, start.state
    return TrainingStarted(
        step=state.step,
        tokens=state.tokens,
        resumed_from=start.resumed_from,
        resumed_host=start.resumed_host,
        checkpoint_hosts=checkpoint_hosts,
        parameters=parameter_count(learner.model),
        ranks=world.size,
        device=name_device(world.device),
        precision=learner.precision.name,
        layout=shape.layout,
        source_capacity=shape.source_tokens,
        target_capacity=shape.target_tokens,
        updates_per_epoch=plan.updates(state.cursor.epoch),
        pairs=len(plan.shards),
        max_steps=max_steps,
        schedule=describe_schedule(recipe.optim, width=recipe.model.width, max_steps=max_steps),
        target_tokens_per_update=recipe.batch.target_tokens,
        max_tokens=recipe.train.max_tokens or 0,
        max_minutes=recipe.train.max_minutes or 0.0,
        way=way.name,
        way_reason=way.reason,
        flops_per_target_token=_count_flops(recipe, plan.shards),
        gradient_bytes=learner.buckets.gradients.nbytes,
        schedule_kind=recipe.optim.schedule,
        learning_rate=recipe.optim.learning_rate,
        warmup_steps=recipe.optim.warmup_steps,
        cooldown_steps=recipe.optim.cooldown_steps,
        width=recipe.model.width,
    )


def _count_flops(recipe: Recipe, shards: ShardSet) -> float:
    """Operations for a target token; of a large text, blocks from all over it are counted."""
    blocks = np.arange(len(shards.blocks.pairs))
    most = max(1, MOST_COUNTED // BLOCK_PAIRS)
    source, target = shards.lengths(blocks[:: -(-len(blocks) // most)])
    # Lengths in shards have no end mark, but a model sees one.
    lengths = Lengths.of(source.astype(np.int64) + 1, target.astype(np.int64) + 1)
    return training_flops(recipe.model, vocabulary=shards.vocabulary, lengths=lengths)


def batches_planned(prepared: Prepared, plan: UpdatePlan, *, epoch: int, layout: Layout) -> BatchesPlanned:
    """How the pairs fall into updates, and what padding costs in this layout."""
    batching = prepared.card().batching
    return BatchesPlanned(
        pairs=len(plan.shards),
        updates_per_epoch=plan.updates(epoch),
        padding_share=batching.packed_share if layout == "packed" else batching.padded_share,
    )


def recipe_mark(recipe: Recipe) -> str:
    """A fingerprint of the resolved recipe."""
    return fingerprint(recipe.model_dump(mode="json"))
