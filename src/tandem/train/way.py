"""How a rank computes: the fastest way that works here, and why not a faster one."""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import torch

from tandem.data.batches.batch import PackedBatch
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.parallel.world import World
from tandem.telemetry.clock import PhaseClock
from tandem.train.learner import Learner
from tandem.train.passes import Pass, PlainPass
from tandem.train.worst import build_worst

if TYPE_CHECKING:
    from tandem.train.fused import FusedPass

__all__ = ["Way", "choose_way", "record_way"]

_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}
_TRIAL_TOKENS = 64
_FP8_SIDES = 16
_HEADS = (16, 32, 64, 128, 256)
"""Numbers of a head that attention can be compiled for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to compute a pass."""

    learn: Pass
    clock: PhaseClock
    """That times its phases."""
    name: Literal["plain", "fused", "graph"]
    reason: str = ""
    """Why not a faster one; empty where this is the fastest, or the only one that was meant."""


def choose_way(
    learner: Learner, shards: ShardSet, *, world: World, smoothing: float, clock: PhaseClock
) -> Way:
    """Fused kernels on GPUs in half precision or fp8, if they can be built on all ranks; otherwise plain operations.

    Nothing but fused kernels multiplies in fp8: where that is asked for and they cannot be had, TandemError says why.
    """
    plain = Way(
        learn=PlainPass(
            learner.model,
            precision=learner.precision,
            buckets=learner.buckets,
            smoothing=smoothing,
            clock=clock,
        ),
        clock=clock,
        name="plain",
    )
    way = _choose(plain, learner, shards, smoothing=smoothing)
    # Shapes of batches follow from the way, and ranks must agree on them.
    without = torch.tensor([float(way.name == "plain")], device=world.device)
    world.sum(without)
    if way.name != "plain" and bool(without > 0):
        learner.optimizer.drop_halves()
        way = replace(plain, reason="another rank cannot run the fused kernels")
    if learner.precision.name == "fp8" and way.name == "plain":
        raise TandemError(f"train.precision fp8 cannot be had here, as {way.reason}: make it bf16 or auto.")
    return way


def _choose(plain: Way, learner: Learner, shards: ShardSet, *, smoothing: float) -> Way:
    device, precision = learner.model.target_embedding.device, learner.precision.name
    if device.type != "cuda" or precision not in _HALF:
        return plain
    if find_spec("triton") is None:
        return replace(plain, reason="Triton is not installed")
    if precision == "fp8" and (odd := _odd_side(learner)):
        return replace(plain, reason=f"it takes sides that 16 divides, and {odd}")
    if unfit := _unfit(learner):
        return replace(plain, reason=unfit)
    # Only now: where there is no GPU, there may be no Triton.
    from tandem.train.fused import FusedPass  # noqa: PLC0415

    fused = FusedPass(
        learner.model,
        halves=learner.optimizer.halves(_HALF[precision]),
        buckets=learner.buckets,
        smoothing=smoothing,
        clock=plain.clock,
        fp8=precision == "fp8",
    )
    try:
        _try(fused, learner, shards)
    except Exception as error:  # noqa: BLE001  (compilers fail in many ways, and the run can go on without)
        learner.optimizer.drop_halves()
        return replace(plain, reason=f"the fused kernels failed here: {_say(error)}")
    return replace(plain, learn=fused, name="fused")


def record_way(way: Way, shards: ShardSet, shape: BatchShape) -> Way:
    """The same way as a CUDA graph for batches of this shape, where that can be."""
    if way.name != "fused":
        return way
    from tandem.train.fused import FusedPass, GraphedPass  # noqa: PLC0415

    example = build_worst(shards, shape)
    assert isinstance(way.learn, FusedPass)
    assert isinstance(example, PackedBatch)
    try:
        return replace(way, learn=GraphedPass(way.learn, example), name="graph")
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return replace(way, reason="a batch does not fit into memory as a CUDA graph")
    except RuntimeError as error:
        return replace(way, reason=f"no CUDA graph could be recorded: {_say(error)}")


def _try(fused: "FusedPass", learner: Learner, shards: ShardSet) -> None:
    tokens = -(-max(shards.longest_source, shards.longest_target) // _TRIAL_TOKENS) * _TRIAL_TOKENS
    batch = build_worst(shards, BatchShape(layout="packed", source_tokens=tokens, target_tokens=tokens))
    fused(batch, seed=0, factor=torch.ones((), device=fused.device), last=False)
    torch.cuda.synchronize(fused.device)
    learner.buckets.clear()


def _odd_side(learner: Learner) -> str:
    """What keeps the model's matrices from fp8; empty where nothing does."""
    section = learner.model.section
    sides = {"model.width": section.width, "model.feed_forward": section.feed_forward}
    return " and ".join(f"{name} is {side}" for name, side in sides.items() if side % _FP8_SIDES)


def _unfit(learner: Learner) -> str:
    """What of the model the fused kernels cannot take; empty where they can take it."""
    # Only now: where there is no GPU, there may be no Triton.
    from tandem.kernels.cross_entropy import LARGEST_VOCABULARY  # noqa: PLC0415

    section, vocabulary = learner.model.section, len(learner.model.output_weight)
    head = section.width // section.heads
    if head not in _HEADS:
        *most, last = _HEADS
        return (
            f"heads of {head} numbers have no fused kernel, which wants {', '.join(map(str, most))} or {last}"
        )
    if vocabulary > LARGEST_VOCABULARY:
        return f"{vocabulary:,} pieces have no fused loss, which takes {LARGEST_VOCABULARY:,}"
    return ""


def _say(error: Exception) -> str:
    """One line of what went wrong: the first, or where that is Triton's place in a source, the last."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip() if lines[0].startswith("at ") else lines[0]
