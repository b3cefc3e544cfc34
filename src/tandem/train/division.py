"""How a run divides its updates among ranks: everything that takes part in it, built together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from tandem.artefact import JsonValue
from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.uneven import Portions, ShareSchedule
from tandem.parallel.world import World
from tandem.runlog.writer import RunLog
from tandem.train.balancer import Balancer
from tandem.train.capacity import gather_capacities

__all__ = ["Division", "build_division", "maybe_same_capacity"]

SHARES = "shares"
"""What a checkpoint calls the facts of it."""
_CAPACITIES, _CHANGES = "capacities", "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """Who gets which part of an update; all ranks always get equal parts where there is no balancer."""

    shape: BatchShape
    """Of this rank's micro-batches while all ranks get equal parts."""
    portions: Portions | None
    balancer: Balancer | None
    schedule: ShareSchedule
    capacities: tuple[int, ...]
    """Tokens a side of the largest micro-batch that fits, for each rank."""

    def announce(self, step: int) -> None:
        """Log shares that a checkpoint brought, before the first step."""
        if self.balancer is not None:
            self.balancer.announce(step)

    def facts(self) -> dict[str, JsonValue]:
        """Return what a checkpoint keeps, so that the same ranks go on with the same shares, to the bit."""
        if self.balancer is None:
            return {}
        changes = cast(JsonValue, self.schedule.to_json())
        return {SHARES: {_CAPACITIES: list(self.capacities), _CHANGES: changes}}


def build_division(
    recipe: Recipe,
    world: World,
    plan: UpdatePlan,
    *,
    shape: BatchShape,
    capacity_tokens: int,
    facts: Mapping[str, Any],
    log: RunLog,
) -> Division:
    """Go on with the shares in a checkpoint's facts, or begin with equal ones; `shape` is that of equal shares."""
    schedule = ShareSchedule()
    if world.size == 1 or recipe.batch.shares == "even":
        return Division(shape=shape, portions=None, balancer=None, schedule=schedule, capacities=())
    if SHARES in facts:
        schedule = ShareSchedule.from_json(facts[SHARES][_CHANGES], ranks=world.size)
    portions = Portions(plan, schedule, rank=world.rank, layout=shape.layout, capacity_tokens=capacity_tokens)
    target_tokens = plan.mean_tokens()[1]
    return Division(
        shape=shape,
        portions=portions,
        balancer=Balancer(schedule, world=world, update_target_tokens=target_tokens, log=log),
        schedule=schedule,
        capacities=gather_capacities(world, capacity_tokens),
    )


def maybe_same_capacity(facts: Mapping[str, Any], world: World) -> int | None:
    """Return this rank's capacity as a checkpoint of as many ranks has it; None where it does not say."""
    capacities = facts.get(SHARES, {}).get(_CAPACITIES, [])
    return int(capacities[world.rank]) if len(capacities) == world.size else None
