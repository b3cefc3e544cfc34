"""Steps that are rehearsed without exchange: nothing of what is learnt may differ by a bit."""

from typing import Any

import pytest
import torch
from tests.distributed.ranks import run_ranks
from tests.learning import Learner, build_learner, build_update, weights
from torch import Tensor, nn

from tandem.parallel.world import World
from tandem.train.asked import Asked
from tandem.train.step import StepResult

STEPS = range(1, 6)
CASES: dict[str, dict[str, Any]] = {
    "fp32": {"precision": "fp32"},
    "bf16": {"precision": "bf16"},
    "fp16, whose loss is scaled": {"precision": "fp16"},
    "dropout": {"model": {"dropout": 0.3}},
}


def learn(learner: Learner, world: World) -> list[StepResult]:
    """On updates of several batches each."""
    return [learner.step(build_update(world, step), step=step, asked=Asked()) for step in STEPS]


def state_of(learner: Learner) -> dict[str, Tensor]:
    return weights(learner) | learner.optimizer.state_tensors() | learner.precision.state_tensors()


def learn_both_ways(world: World, options: dict[str, Any], *, rows: int | None = None) -> dict[str, Any]:
    plain, probed = build_learner(world, **options), build_learner(world, **options, probe_steps=1)
    if rows is not None and world.rank == 1:
        for learner in (plain, probed):
            learner.model.register_forward_hook(lambda *held: _fail_above(rows, *held))
    reference, results = learn(plain, world), learn(probed, world)
    phases = [probed.clock.read(step) for step in STEPS]
    held = state_of(plain)
    events = [
        result.probed and result.probed.read(result.step, exchange_s=(split or {})["exchange"])
        for result, split in zip(results, phases, strict=True)
    ]
    return {
        "same state": all(torch.equal(value, held[name]) for name, value in state_of(probed).items()),
        "same numbers": [each.read() for each in reference] == [each.read() for each in results],
        "splits": [len(each.splits) for each in results],
        "never alone": [each.probed for each in reference],
        "events": [
            event and (event.synchronised_s, event.unsynchronised_s, event.exchange_s) for event in events
        ],
    }


def _fail_above(rows: int, _module: nn.Module, _given: Any, states: Tensor) -> None:
    if len(states) > rows:
        raise torch.OutOfMemoryError("planted")


@pytest.mark.parametrize("case", CASES)
def test_a_rehearsed_step_ends_in_the_same_bits_and_both_times_are_known(case: str) -> None:
    for rank in run_ranks(learn_both_ways, 2, CASES[case]):
        assert rank["same state"]
        assert rank["same numbers"]
        assert rank["never alone"] == [None] * len(STEPS)
        for synchronised, unsynchronised, exchange in rank["events"]:
            assert synchronised > exchange > 0
            assert unsynchronised > 0


def learn_short_of_memory(world: World) -> dict[str, Any]:
    return learn_both_ways(world, {}, rows=2)


def test_where_memory_does_not_suffice_for_one_rank_nobody_is_timed_and_all_learn_the_same() -> None:
    lucky, unlucky = run_ranks(learn_short_of_memory, 2)
    for rank in (lucky, unlucky):
        assert rank["same state"]
        assert rank["same numbers"]
    timed = [[event is not None for event in rank["events"]] for rank in (lucky, unlucky)]
    assert timed[0] == timed[1]
    assert not timed[0][0]
    assert any(timed[0])
    assert unlucky["splits"][0] > 0
