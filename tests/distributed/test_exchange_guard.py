"""The guard over encoded gradients: it tells how far off they are, fires at broken codecs, and at no sound one."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tests.distributed.ranks import run_ranks
from tests.distributed.test_exchange import digest
from tests.learning import Learner, build_learner, train, weights
from torch import Tensor

from tandem.parallel.codec import GradientCodec
from tandem.parallel.encoding import Codec
from tandem.parallel.world import World
from tandem.runlog.event import Event, ExchangeChecked, ExchangeChosen
from tandem.train.exchange_guard import MOST_LOST

EVERY = 5
DEVICE = torch.device("cpu")
EXCHANGE = {"mode": "packed", "exact_steps": 10, "check_steps": EVERY}


class Kept:
    """A log of which the events stay."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)


class Stretched(GradientCodec):
    """What is decoded is a tenth too large."""

    def decode(self, packed: Tensor, second_moment: Tensor, out: Tensor, *, add: bool = False) -> None:
        whole = torch.empty_like(out)
        super().decode(packed, second_moment, whole)
        out.add_(whole * 1.1) if add else out.copy_(whole * 1.1)


class Forgetful(GradientCodec):
    """What encoding takes away is not kept for later."""

    def encode(self, *args: Any, **kwargs: Any) -> None:
        super().encode(*args, **kwargs)
        remainder: Tensor = args[3]
        remainder.zero_()


BROKEN: dict[str, Callable[[], Codec]] = {
    "wrong scale": lambda: Stretched(seed=5, device=DEVICE),
    "lost residual": lambda: Forgetful(seed=5, device=DEVICE),
    "one bit": lambda: GradientCodec(seed=5, device=DEVICE, bits=1),
}


def packed(world: World, hosts: Sequence[int], **exchange: Any) -> tuple[Learner, Kept]:
    learner, log = build_learner(world, exchange=EXCHANGE | exchange, hosts=hosts), Kept()
    assert learner.exchanger is not None
    learner.exchanger._log = log  # type: ignore[assignment]
    return learner, log


def learn_with(world: World, hosts: Sequence[int], codec: str, steps: int) -> dict[str, Any]:
    learner, log = packed(world, hosts)
    assert learner.exchanger is not None
    if codec:
        learner.exchanger._codecs["packed"] = BROKEN[codec]()
        learner.exchanger._use("packed")
    numbers = train(learner, world, range(1, steps + 1))
    checked = [event for event in log.events if isinstance(event, ExchangeChecked)]
    chosen = [event for event in log.events if isinstance(event, ExchangeChosen)]
    return {
        "checked": [(each.step, each.mode, each.is_good) for each in checked],
        "numbers": [(each.error, each.cosine, each.owed, each.lost) for each in checked],
        "chosen": [(each.step, each.previous, each.mode, each.reason) for each in chosen],
        "bits": digest(weights(learner)),
        "facts": learner.exchanger.facts(steps),
        "finite": all(each.loss_sum < 1e6 for each in numbers),
    }


@pytest.mark.parametrize("hosts", [(1, 1), (2, 2), (1, 1, 1)], ids=str)
def test_a_sound_codec_is_left_alone_and_nothing_is_lost_on_the_way(hosts: Sequence[int]) -> None:
    ranks = run_ranks(learn_with, sum(hosts), hosts, "", 50)
    for rank in ranks:
        assert rank["bits"] == ranks[0]["bits"]
        assert rank["numbers"] == ranks[0]["numbers"]
        assert [step for step, *_ in rank["checked"]] == list(range(15, 51, EVERY))
        assert all(is_good for *_, is_good in rank["checked"])
        assert rank["chosen"] == []
        for error, cosine, owed, lost in rank["numbers"]:
            assert 0.005 < error < 0.4
            assert 0.9 < cosine < 1
            assert 0.001 < owed < 0.4
            assert lost < MOST_LOST / 100


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("hosts", [(1, 1), (1, 1, 1)], ids=str)
def test_a_broken_codec_is_left_by_all_ranks_at_the_same_step_within_two_checks(
    hosts: Sequence[int], broken: str
) -> None:
    ranks = run_ranks(learn_with, sum(hosts), hosts, broken, 40)
    for rank in ranks:
        assert rank["bits"] == ranks[0]["bits"]
        ((step, previous, mode, reason),) = rank["chosen"]
        assert (previous, mode, reason) == ("packed", "bf16", "checked")
        assert step in {15, 20}
        assert (step, "packed", False) in rank["checked"]
        # The next mode is sound, and stays.
        assert all(is_good for at, name, is_good in rank["checked"] if name == "bf16")
        assert {name for at, name, _ in rank["checked"] if at > step} == {"bf16"}
        assert rank["facts"]["exchange"]["left"] == "packed"
        assert rank["facts"]["exchange"]["mode"] == "bf16"
        assert rank["finite"]


def resume_in(world: World, facts: dict[str, Any], exchange: dict[str, Any]) -> tuple[str, str]:
    learner, log = packed(world, (1, 1), **exchange)
    assert learner.exchanger is not None
    learner.exchanger.resume({"exchange": facts})
    learner.exchanger.announce(100)
    (event,) = log.events
    assert isinstance(event, ExchangeChosen)
    return event.mode, event.reason


@pytest.mark.parametrize(
    ("ordered", "expected"),
    [
        ("packed", ("bf16", "checked")),
        ("exact", ("exact", "ordered")),
        ("bf16", ("bf16", "ordered")),
        ("auto", ("bf16", "resumed")),
    ],
)
def test_a_mode_that_was_left_is_not_taken_again_by_a_restart(
    ordered: str, expected: tuple[str, str]
) -> None:
    facts = {"mode": "bf16", "owners": [2, 1], "left": "packed"}
    for found in run_ranks(resume_in, 2, facts, {"mode": ordered}):
        assert found == expected


def resume_alone(world: World, facts: dict[str, Any]) -> Any:
    learner, _ = packed(world, (1,))
    assert learner.exchanger is not None
    learner.exchanger.resume({"exchange": facts})
    return learner.exchanger.facts(100)["exchange"]


def test_a_mode_that_was_left_stays_left_while_the_run_goes_on_alone() -> None:
    told = {"mode": "bf16", "owners": [2, 1], "left": "packed"}
    (kept,) = run_ranks(resume_alone, 1, told)
    assert kept == {**told, "owners": []}


def learn_with_restarts(world: World) -> list[tuple[int, str]]:
    """A codec of one bit, and a restart between every two checks."""
    facts: dict[str, Any] = {}
    chosen = []
    for first in range(1, 40, EVERY):
        learner, log = packed(world, (1, 1))
        assert learner.exchanger is not None
        learner.exchanger.resume(facts)
        learner.exchanger._codecs["packed"] = BROKEN["one bit"]()
        learner.exchanger._use(learner.exchanger._mode)
        train(learner, world, range(first, first + EVERY))
        chosen += [(event.step, event.mode) for event in log.events if isinstance(event, ExchangeChosen)]
        facts = dict(learner.exchanger.facts(first + EVERY - 1))
    return chosen


def test_restarts_between_checks_change_nothing() -> None:
    assert run_ranks(learn_with_restarts, 2) == [[(20, "bf16")]] * 2


def learn_nothing(world: World) -> list[tuple[float, bool]]:
    learner, log = packed(world, (1, 1))
    for parameter in learner.model.parameters():
        parameter.register_hook(torch.zeros_like)  # type: ignore[no-untyped-call]
    train(learner, world, range(1, 31))
    return [(event.error, event.is_good) for event in log.events if isinstance(event, ExchangeChecked)]


def test_gradients_that_are_all_zero_are_exact() -> None:
    assert run_ranks(learn_nothing, 2) == [[(0.0, True)] * 4] * 2


def learn_unchecked(world: World) -> list[str]:
    learner, log = packed(world, (1, 1), check_steps=None)
    train(learner, world, range(1, 31))
    return [type(event).__name__ for event in log.events]


def test_no_step_is_looked_at_where_that_is_switched_off() -> None:
    assert run_ranks(learn_unchecked, 2) == [[], []]
