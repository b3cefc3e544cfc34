from dataclasses import replace

import pytest
import torch

from tandem.parallel.world import SoloWorld
from tandem.runlog.event import ExchangeProbed
from tandem.telemetry.clock import PhaseClock
from tandem.train.probe import ExchangeProbe

CPU = torch.device("cpu")
PAIR = SoloWorld(device=CPU, size=2)


class HandTimer:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def is_past(self, stamp: float) -> bool:
        return stamp <= self.time

    def seconds(self, start: float, stop: float) -> float:
        return stop - start


def probe(world: SoloWorld, every_steps: int | None) -> ExchangeProbe:
    return ExchangeProbe(world, clock=PhaseClock(CPU), every_steps=every_steps)


def test_some_early_steps_are_rehearsed_and_then_one_in_so_many() -> None:
    due = probe(PAIR, 500).is_due
    assert [step for step in range(1, 1600) if due(step)] == [20, 60, 180, 500, 1000, 1500]


@pytest.mark.parametrize(("world", "every_steps"), [(SoloWorld(device=CPU), 500), (PAIR, None)])
def test_nothing_is_rehearsed_alone_or_where_nobody_wants_it(
    world: SoloWorld, every_steps: int | None
) -> None:
    due = probe(world, every_steps).is_due
    assert not any(map(due, range(1, 1001)))


def test_the_step_and_its_rehearsal_are_timed_from_where_all_ranks_began_them() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)

    def work() -> bool:
        timer.time += 2
        return True

    timer.time = 100
    probed = ExchangeProbe(PAIR, clock=clock, every_steps=10).rehearse(work)
    assert probed is not None
    timer.time += 5
    probed = replace(probed, exchanged=clock.stamp())
    clock.finish(10)
    assert probed.read(10, exchange_s=3.0) == ExchangeProbed(
        step=10, synchronised_s=5, unsynchronised_s=2, exchange_s=3
    )
    phases = clock.read(10)
    assert phases is not None
    assert sum(phases.values()) == 105


def test_work_that_did_not_come_to_its_end_is_not_timed() -> None:
    assert probe(PAIR, 10).rehearse(lambda: False) is None
