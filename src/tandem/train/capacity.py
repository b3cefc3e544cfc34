"""How much text one micro-batch holds: derived from device, model and update, never written in a recipe."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

import torch

from tandem.artefact import JsonValue
from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape, check_shape, fit_packed
from tandem.estimate.memory import SPARE, RankMemory
from tandem.parallel.world import World

__all__ = [
    "Layout",
    "build_shape",
    "choose_capacity",
    "describe_shape",
    "gather_capacities",
    "hold_longest",
    "layout_for",
    "layout_for_evaluation",
    "maybe_same_shape",
]

Layout: TypeAlias = Literal["padded", "packed"]

CPU_TOKENS = 2048
"""Enough for matrix products at full speed, little enough for caches."""
LEAST_TOKENS = 256
_MULTIPLE = 64

_FLASH_CAPABILITY = (8, 0)
_FLASH_MULTIPLE, _FLASH_MOST = 8, 192
"""Numbers of a head for which PyTorch's attention over packed rows works on every GPU that has it."""


def layout_for(recipe: Recipe, device: torch.device, precision: str, *, fused: bool) -> Layout:
    """Packed rows where packed attention works: fused, or PyTorch's own, which has no dropout."""
    if fused:
        return "packed"
    return "padded" if recipe.model.attention_dropout else layout_for_evaluation(recipe, device, precision)


def layout_for_evaluation(recipe: Recipe, device: torch.device, precision: str) -> Layout:
    """Packed rows where PyTorch's attention over them works: in half precision, on GPUs that are not too old."""
    if device.type != "cuda" or precision not in {"bf16", "fp16", "fp8"}:
        return "padded"
    head = recipe.model.width // recipe.model.heads
    is_known = torch.cuda.get_device_capability(device) >= _FLASH_CAPABILITY
    return "packed" if is_known and head % _FLASH_MULTIPLE == 0 and head <= _FLASH_MOST else "padded"


def choose_capacity(recipe: Recipe, device: torch.device, *, fused: bool = True) -> int:
    """Tokens a side of a micro-batch that surely fits beside what is on the device already, by the estimate."""
    if device.type != "cuda":
        return CPU_TOKENS
    free, _ = torch.cuda.mem_get_info(device)
    return max(LEAST_TOKENS, RankMemory.of(recipe, fused=fused).largest_tokens(free * (1 - SPARE)))


def build_shape(plan: UpdatePlan, *, layout: Layout, world: World, capacity_tokens: int) -> BatchShape:
    """The shape of micro-batches that hold at most so many tokens a side, or one sentence; the same on all ranks."""
    held = torch.tensor([capacity_tokens], device=world.device)
    world.smallest(held)
    capacity = hold_longest(plan, int(held))
    if layout == "packed":
        shape = fit_packed(plan, ranks=world.size, capacity_tokens=capacity)
    else:
        shape = BatchShape(layout="padded", source_tokens=capacity, target_tokens=capacity)
    check_shape(shape, plan.shards)
    return shape


def hold_longest(plan: UpdatePlan, capacity_tokens: int) -> int:
    """Return the capacity, or what the longest sentence needs where that is more."""
    longest = max(plan.shards.longest_source, plan.shards.longest_target)
    return max(capacity_tokens, -(-longest // _MULTIPLE) * _MULTIPLE)


def gather_capacities(world: World, capacity_tokens: int) -> tuple[int, ...]:
    """Return the capacity of every rank."""
    capacities = torch.zeros(world.size, dtype=torch.int64, device=world.device)
    capacities[world.rank] = capacity_tokens
    world.sum(capacities)
    return tuple(capacities.tolist())


def describe_shape(shape: BatchShape, world: World) -> dict[str, JsonValue]:
    """What a checkpoint keeps, so that as many ranks of the same kind go on in the same shapes, to the bit."""
    return {**_equipment(world), **asdict(shape)}


def maybe_same_shape(held: Mapping[str, Any], world: World) -> BatchShape | None:
    """The shape that a checkpoint's run had, if it was on as many ranks of this kind."""
    equipment = _equipment(world)
    if any(held.get(name) != value for name, value in equipment.items()):
        return None
    return BatchShape(**{name: value for name, value in held.items() if name not in equipment})


def _equipment(world: World) -> dict[str, JsonValue]:
    return {"ranks": world.size, "device": world.device.type}
