from collections.abc import Callable
from typing import Any

import pytest
import torch

from tandem.config import Recipe
from tandem.data.batches.shape import BatchShape
from tandem.data.prepared import open_prepared
from tandem.parallel.world import SoloWorld
from tandem.runlog.event import Event, SharesChanged
from tandem.runlog.writer import NullLog
from tandem.train.division import Division, build_division, maybe_same_capacity

RecipeWith = Callable[..., Recipe]
SHAPE = BatchShape(layout="padded", source_tokens=256, target_tokens=256)
PAIR = SoloWorld(device=torch.device("cpu"), rank=1, size=2)
ALONE = SoloWorld(device=torch.device("cpu"))


class Log(NullLog):
    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)


def divide(recipe: Recipe, world: SoloWorld, facts: dict[str, Any] | None = None, **given: Any) -> Division:
    plan = open_prepared(recipe.prepared_folder).plan()
    options: dict[str, Any] = {"capacity_tokens": 512, "log": NullLog()} | given
    return build_division(recipe, world, plan, shape=SHAPE, facts=facts or {}, **options)


def test_one_rank_has_nothing_to_divide(micro: Recipe) -> None:
    division = divide(micro, ALONE)
    assert (division.portions, division.balancer, division.facts()) == (None, None, {})


def test_equal_shares_that_are_ordered_leave_no_trace_even_of_a_checkpoints(recipe_with: RecipeWith) -> None:
    facts = {"shares": {"capacities": [1, 2], "changes": [{"first_step": 3, "shares": [0.2, 0.8]}]}}
    division = divide(recipe_with("batch.shares=even"), PAIR, facts)
    assert (division.portions, division.balancer, division.facts()) == (None, None, {})
    division.announce(7)


def test_shares_and_capacities_go_through_a_checkpoint(recipe_with: RecipeWith) -> None:
    measured = recipe_with("batch.shares=auto")
    division = divide(measured, PAIR)
    division.schedule.change((0.2, 0.8), first_step=48)
    log = Log()
    again = divide(measured, PAIR, division.facts(), log=log)
    assert again.facts() == division.facts()
    assert [again.schedule.at(step) for step in (47, 48)] == [(), (0.2, 0.8)]
    assert maybe_same_capacity(division.facts(), PAIR) == 512
    again.announce(44)
    (event,) = log.events
    assert isinstance(event, SharesChanged)
    assert (event.step, event.first_step, event.shares) == (44, 48, (0.2, 0.8))


@pytest.mark.parametrize("facts", [{}, {"shares": {"capacities": [512] * 3, "changes": []}}])
def test_capacities_of_other_ranks_are_nobodys(facts: dict[str, Any]) -> None:
    assert maybe_same_capacity(facts, PAIR) is None


def test_shares_of_other_ranks_are_forgotten(recipe_with: RecipeWith) -> None:
    facts = {"shares": {"capacities": [1] * 3, "changes": [{"first_step": 3, "shares": [0.2, 0.3, 0.5]}]}}
    assert divide(recipe_with("batch.shares=auto"), PAIR, facts).schedule.at(10) == ()
