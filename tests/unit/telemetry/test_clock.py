import pytest
import torch

from tandem.telemetry.clock import PHASES, PhaseClock

CPU = torch.device("cpu")


class HandTimer:
    """A clock that is set by hand; moments after `past` are still to come."""

    def __init__(self) -> None:
        self.time = 0.0
        self.past = float("inf")

    def now(self) -> float:
        return self.time

    def is_past(self, stamp: float) -> bool:
        return stamp <= self.past

    def seconds(self, start: float, stop: float) -> float:
        return stop - start


def test_a_step_is_split_into_its_phases_and_the_rest() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    for _ in range(2):
        with clock.phase("forward"):
            timer.time += 2
        with clock.phase("backward"):
            timer.time += 3
    timer.time += 0.5
    with clock.phase("exchange"):
        timer.time += 1
    clock.finish(7)
    assert clock.read(7) == {
        "data": 0,
        "forward": 4,
        "backward": 6,
        "exchange": 1,
        "optimizer": 0,
        "other": 0.5,
    }


def test_time_between_steps_belongs_to_the_next_one_unless_it_is_restarted() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    clock.finish(1)
    timer.time += 3
    clock.finish(2)
    timer.time += 60
    clock.restart()
    timer.time += 1
    clock.finish(3)
    assert [sum((clock.read(step) or {}).values()) for step in (1, 2, 3)] == [0, 3, 1]


def test_what_is_done_aside_is_no_part_of_the_step_nor_are_its_phases() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    with clock.phase("data"):
        timer.time += 1
    with clock.aside():
        timer.time += 50
        with clock.phase("forward"):
            timer.time += 7
    with clock.phase("forward"):
        timer.time += 2
    clock.finish(1)
    timer.time += 4
    clock.finish(2)
    split, later = clock.read(1), clock.read(2)
    assert split is not None
    assert later is not None
    assert (split["data"], split["forward"], split["other"]) == (1, 2, 0)
    assert later["other"] == 4


def test_moments_can_be_taken_and_held_against_each_other() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    start = clock.stamp()
    timer.time += 3
    assert clock.seconds(start, clock.stamp()) == 3


def test_a_step_that_is_not_over_cannot_be_read_yet() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    timer.past, timer.time = 5, 6
    clock.finish(1)
    assert clock.read(1) is None
    timer.past = 6
    assert clock.read(1) is not None
    assert clock.read(1) is None
    assert clock.read(2) is None


def test_reading_a_step_forgets_those_before_it() -> None:
    clock = PhaseClock(CPU, timer=HandTimer())
    for step in range(1, 4):
        clock.finish(step)
    assert clock.read(2) is not None
    assert clock.read(1) is None
    assert clock.read(3) is not None


def test_a_phase_that_fails_is_counted_too() -> None:
    timer = HandTimer()
    clock = PhaseClock(CPU, timer=timer)
    with pytest.raises(ValueError, match="planted"), clock.phase("forward"):
        timer.time += 2
        raise ValueError("planted")
    clock.finish(1)
    split = clock.read(1)
    assert split is not None
    assert split["forward"] == 2


def test_the_clock_of_the_host_names_every_phase() -> None:
    clock = PhaseClock(CPU)
    with clock.phase("data"):
        pass
    clock.finish(1)
    split = clock.read(1)
    assert split is not None
    assert tuple(split) == PHASES
    assert all(seconds >= 0 for seconds in split.values())


@pytest.mark.gpu
def test_on_a_gpu_work_is_timed_where_it_is_done() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    clock = PhaseClock(torch.device("cuda"))
    matrix = torch.randn(4096, 4096, device="cuda")
    with clock.phase("forward"):
        for _ in range(20):
            matrix @ matrix
    with clock.phase("backward"):
        matrix @ matrix
    clock.finish(1)
    torch.cuda.synchronize()
    split = clock.read(1)
    assert split is not None
    assert split["forward"] > split["backward"] > 0
