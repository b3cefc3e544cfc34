"""Steps on real ranks: the same as on one, together in everything, and not stopped by one rank's bad luck."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.distributed.ranks import run_ranks
from tests.learning import Learner, build_learner, build_update, train, weights
from torch import Tensor, nn

from tandem.parallel.world import World
from tandem.train.asked import Asked
from tandem.train.step import StepNumbers

STEPS = range(1, 21)


def flat(tensors: dict[str, Tensor]) -> NDArray[np.float64]:
    """All weights but key biases.

    The same number added to every key changes no attention weight: its true gradient is zero, and Adam makes steps of
    whatever rounding leaves there.
    """
    kept = []
    for name, tensor in tensors.items():
        parts = list(tensor.flatten().chunk(3 if "query_key_value" in name else 2))
        if name.endswith("query_key_value.bias"):
            del parts[1]
        elif name.endswith("key_value.bias"):
            del parts[0]
        kept += parts
    return torch.cat(kept).double().numpy()


def relative(value: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))


def curve(numbers: list[StepNumbers]) -> NDArray[np.float64]:
    return np.array([[each.loss_sum, each.nll_sum, each.gradient_norm] for each in numbers])


def learn_twice(world: World) -> dict[str, Any]:
    learner, again = build_learner(world), build_learner(world)
    numbers = train(learner, world, STEPS)
    repeated = train(again, world, STEPS)
    same = all(torch.equal(value, weights(again)[name]) for name, value in weights(learner).items())
    return {
        "weights": flat(weights(learner)),
        "curve": curve(numbers),
        "same bits again": same and numbers == repeated,
        "sent": learner.buckets.sent_bytes,
    }


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """What one process without others learns."""
    result: dict[str, Any] = run_ranks(learn_twice, 1)[0]
    return result


@pytest.mark.parametrize("size", [2, 3])
def test_many_ranks_learn_what_one_learns(size: int, alone: dict[str, Any]) -> None:
    """Whole-vector relative error after 20 steps in fp32, on uneven shares of two to five batches, some empty."""
    ranks = run_ranks(learn_twice, size)
    for rank in ranks:
        assert relative(rank["weights"], alone["weights"]) < 1e-5
        assert np.allclose(rank["curve"], alone["curve"], rtol=1e-5)
        assert np.array_equal(rank["weights"], ranks[0]["weights"])
        assert np.array_equal(rank["curve"], ranks[0]["curve"])
        assert rank["same bits again"]
        assert rank["sent"] > 0
    assert alone["sent"] == 0


def learn_by_muon(world: World) -> dict[str, Any]:
    learner = build_learner(world, optim={"algorithm": "muon"})
    return {"curve": curve(train(learner, world, STEPS)), "weights": flat(weights(learner))}


def test_many_ranks_learn_by_muon_what_one_learns() -> None:
    """To the bit on all ranks; what sums round otherwise grows in directions that hardly any gradient is in."""
    alone, ranks = run_ranks(learn_by_muon, 1)[0], run_ranks(learn_by_muon, 3)
    for rank in ranks:
        assert np.array_equal(rank["weights"], ranks[0]["weights"])
        assert np.allclose(rank["curve"], alone["curve"], rtol=1e-3)
        assert relative(rank["weights"], alone["weights"]) < 1e-3


def learn_with_poison(world: World) -> dict[str, Any]:
    learner = build_learner(world)
    before = train(learner, world, range(1, 3))
    held = weights(learner)
    state = {name: value.clone() for name, value in learner.optimizer.state_tensors().items()}
    poisoned = learner.model.get_parameter("decoder_norm.weight")
    poison = float("nan") if world.rank == 1 else 1.0
    handle = poisoned.register_hook(lambda gradient: gradient * poison)  # type: ignore[no-untyped-call]
    skipped = train(learner, world, range(3, 4))
    handle.remove()
    kept = all(torch.equal(value, held[name]) for name, value in weights(learner).items())
    kept &= all(torch.equal(value, state[name]) for name, value in learner.optimizer.state_tensors().items())
    return {"numbers": before + skipped + train(learner, world, range(4, 6)), "kept": kept}


def test_a_nan_on_one_rank_is_skipped_by_all() -> None:
    for rank in run_ranks(learn_with_poison, 2):
        assert [each.skipped for each in rank["numbers"]] == [False, False, True, False, False]
        assert rank["kept"]
        assert np.isfinite(rank["numbers"][-1].loss_sum)


def ask_for_things(world: World) -> list[StepNumbers]:
    learner = build_learner(world)
    wishes = [Asked(), Asked(stop=world.rank == 1), Asked(evaluate=world.rank == 0, save=True), Asked()]
    return [
        train(learner, world, range(step, step + 1), asked=wish)[0] for step, wish in enumerate(wishes, 1)
    ]


def test_what_one_rank_asks_for_is_heard_by_all_in_the_same_step() -> None:
    for numbers in run_ranks(ask_for_things, 2):
        assert [each.asked for each in numbers] == [
            Asked(),
            Asked(stop=True),
            Asked(evaluate=True, save=True),
            Asked(),
        ]


class FailInBackward(torch.autograd.Function):
    """Passes states on, and runs out of memory on the way back."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, note: Callable[[], None]) -> Tensor:
        ctx.note = note
        return states.clone()

    @staticmethod
    def backward(ctx: Any, _gradient: Tensor) -> Tensor:
        ctx.note()
        raise torch.OutOfMemoryError("planted")


class Fault:
    """Lack of memory in the forward or the backward pass of a layer, for some (rows, number of the call)."""

    def __init__(self, learner: Learner, place: str, strikes: Callable[[int, int], bool]) -> None:
        self.sent_before: list[int] = []
        self._calls = 0
        self._buckets, self._place, self._strikes = learner.buckets, place, strikes
        layer = learner.model.encoder[1] if "encoder" in place else learner.model.decoder[-1]
        layer.register_forward_hook(self._hook)

    def _hook(self, _module: nn.Module, _given: Any, states: Tensor) -> Tensor:
        self._calls += 1
        if not self._strikes(len(states), self._calls):
            return states
        if "forward" in self._place:
            self._note()
            raise torch.OutOfMemoryError("planted")
        failing: Tensor = FailInBackward.apply(states, self._note)  # type: ignore[no-untyped-call]
        return failing

    def _note(self) -> None:
        self.sent_before.append(len(self._buckets._handles))


LAST_BATCH = 3
"""The number of the call that is rank 1's last in its first update."""

FAULTS: dict[str, Callable[[int, int], bool]] = {
    "forward of the decoder": lambda rows, _: rows > 2,
    "backward of the decoder": lambda rows, _: rows > 1,
    "last backward of the encoder": lambda _, call: call == LAST_BATCH,
}


def learn_short_of_memory(world: World, place: str) -> dict[str, Any]:
    plain, learner = build_learner(world), build_learner(world)
    reference = train(plain, world, range(1, 4))
    fault = Fault(learner, place, FAULTS[place] if world.rank == 1 else lambda *_: False)
    results = [learner.step(build_update(world, step), step=step, asked=Asked()) for step in range(1, 4)]
    return {
        "error": relative(flat(weights(learner)), flat(weights(plain))),
        "curve": curve([result.read() for result in results]),
        "reference": curve(reference),
        "sent before": fault.sent_before,
        "splits": [len(result.splits) for result in results],
        "heard": [result.read().split for result in results],
    }


@pytest.mark.parametrize("place", FAULTS)
def test_lack_of_memory_on_one_rank_changes_nothing_but_rounding(place: str) -> None:
    ranks = run_ranks(learn_short_of_memory, 2, place)
    for rank in ranks:
        assert rank["error"] < 1e-5
        assert np.allclose(rank["curve"], rank["reference"], rtol=1e-5)
    lucky, unlucky = ranks
    assert lucky["sent before"] == []
    assert lucky["splits"] == [0, 0, 0]
    assert unlucky["splits"][0] > 0
    assert lucky["heard"] == unlucky["heard"] == unlucky["splits"]
    assert (unlucky["sent before"][0] > 0) is ("last backward" in place)
