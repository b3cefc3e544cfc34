"""A tiny model that learns made-up pairs, on whatever ranks there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from tandem.config import ExchangeSection, ModelSection, OptimSection
from tandem.data.batches.batch import Batch
from tandem.data.batches.fill import build_packed, build_padded
from tandem.data.batches.plan import Cursor
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import UpdateBatches
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.special import SpecialIds
from tandem.model import Transformer, build_model
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.topology import Topology
from tandem.parallel.world import World
from tandem.telemetry.clock import PhaseClock
from tandem.train.asked import Asked
from tandem.train.exchanger import Exchanger
from tandem.train.optim import Optimizer
from tandem.train.passes import PlainPass
from tandem.train.precision import Precision, PrecisionName
from tandem.train.schedule import build_schedule
from tandem.train.step import SLOTS, StepNumbers, TrainingStep

__all__ = [
    "Learner",
    "build_batch",
    "build_learner",
    "build_update",
    "pack",
    "pose_as_hosts",
    "train",
    "weights",
]

SPECIAL = SpecialIds()
VOCABULARY = 32
PAIRS_A_BATCH = 3
MODEL: dict[str, Any] = {
    "width": 16,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "feed_forward": 32,
    "dropout": 0.0,
}
OPTIM: dict[str, Any] = {"learning_rate": 3e-3, "warmup_steps": 5, "clip_norm": 1.0}

Pair = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A rank's model and all that changes it."""

    model: Transformer
    buckets: GradientBuckets
    optimizer: Optimizer
    precision: Precision
    clock: PhaseClock
    step: TrainingStep
    exchanger: Exchanger | None = None


def build_learner(
    world: World,
    *,
    bucket_bytes: int = 2048,
    precision: PrecisionName = "fp32",
    model: dict[str, Any] | None = None,
    optim: dict[str, Any] | None = None,
    probe_steps: int | None = None,
    exchange: dict[str, Any] | None = None,
    hosts: Sequence[int] = (),
) -> Learner:
    """All parts of a training step, many small buckets among them; `hosts` are numbers of ranks, for an exchange."""
    section, rules = ModelSection(**(MODEL | (model or {}))), OptimSection(**(OPTIM | (optim or {})))
    built = build_model(
        section, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, pad=SPECIAL.pad, seed=1
    ).to(world.device)
    buckets = GradientBuckets(list(built.parameters()), world, slots=SLOTS, bucket_bytes=bucket_bytes)
    optimizer, precise = Optimizer(built, rules, buckets), Precision(precision, world.device)
    clock = PhaseClock(world.device)
    learn = PlainPass(built, precision=precise, buckets=buckets, smoothing=0.1, clock=clock)
    exchanger = None
    if exchange is not None:
        exchanger = Exchanger(
            buckets,
            world=world,
            topology=pose_as_hosts(world, hosts),
            section=ExchangeSection(**exchange),
            second_moment=optimizer.second_moment,
            seed=5,
            timeout_s=60.0,
        )
        exchanger.resume({})
    step = TrainingStep(
        learn,
        world=world,
        buckets=buckets,
        optimizer=optimizer,
        precision=precise,
        schedule=build_schedule(rules, width=section.width, max_steps=100),
        seed=7,
        clock=clock,
        probe_steps=probe_steps,
        exchanger=exchanger,
    )
    return Learner(
        model=built,
        buckets=buckets,
        optimizer=optimizer,
        precision=precise,
        clock=clock,
        step=step,
        exchanger=exchanger,
    )


def pose_as_hosts(world: World, hosts: Sequence[int]) -> Topology:
    """The ranks of a test as so many ranks on each host."""
    places = [(f"h{number}", local) for number, ranks in enumerate(hosts, 1) for local in range(ranks)]
    return Topology.build([name for name, _ in places], [local for _, local in places], rank=world.rank)


def build_update(world: World, step: int, *, pairs: int = 13) -> UpdateBatches:
    """Some pairs, dealt unevenly: the first ranks have few, some batches of theirs are empty."""
    every = _draw(step, pairs)
    bounds = [round(pairs * (rank / world.size) ** 1.5) for rank in range(world.size + 1)]
    mine = every[bounds[world.rank] : bounds[world.rank + 1]]
    most = max(stop - start for start, stop in pairwise(bounds))
    batches = [build_batch(mine[start : start + PAIRS_A_BATCH]) for start in range(0, most, PAIRS_A_BATCH)]
    return UpdateBatches(
        cursor=Cursor(update=step),
        batches=tuple(batches),
        pairs=pairs,
        source_tokens=sum(len(source) + 1 for source, _ in every),
        target_tokens=sum(len(target) + 1 for _, target in every),
    )


def build_batch(pairs: Sequence[Pair]) -> Batch[torch.Tensor]:
    """A padded batch."""
    return build_padded(*_sides(pairs), special=SPECIAL).map(torch.from_numpy)


def pack(pairs: Sequence[Pair], *, capacity: int = 128) -> Batch[torch.Tensor]:
    """The same pairs in a packed row."""
    shape = BatchShape(layout="packed", source_tokens=capacity, target_tokens=capacity)
    return build_packed(*_sides(pairs), special=SPECIAL, shape=shape).map(torch.from_numpy)


def train(learner: Learner, world: World, steps: range, *, asked: Asked | None = None) -> list[StepNumbers]:
    """Make these steps and read each of them."""
    return [
        learner.step(build_update(world, step), step=step, asked=asked or Asked()).read() for step in steps
    ]


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    """Copies by name."""
    return {name: value.detach().clone() for name, value in learner.model.named_parameters()}


def _sides(pairs: Sequence[Pair]) -> tuple[Ragged, Ragged]:
    return Ragged.from_lists([source for source, _ in pairs]), Ragged.from_lists(
        [target for _, target in pairs]
    )


def _draw(step: int, pairs: int) -> list[Pair]:
    generator = np.random.default_rng(step)

    def sentence() -> list[int]:
        return [int(piece) for piece in generator.integers(4, VOCABULARY, generator.integers(1, 12))]

    return [(sentence(), sentence()) for _ in range(pairs)]
