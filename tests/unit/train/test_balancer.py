"""The controller against ranks whose speed is known, as the training loop would call it."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import numpy as np
import pytest
import torch

from tandem.data.batches.uneven import EQUAL, Shares, ShareSchedule
from tandem.parallel.world import SoloWorld
from tandem.runlog.event import Event, SharesChanged
from tandem.train.balancer import AHEAD_STEPS, NUMBERS_A_RANK, WINDOW_STEPS, Balancer

Speeds = Callable[[int], Sequence[float]]
"""Seconds of each rank for a whole update, by step."""
DEPTH = 4


class Log:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        """Nothing was opened."""


class Simulation:
    """Ranks with a balancer each; their numbers are summed as slots would be."""

    def __init__(
        self, speeds: Speeds, *, fixed_s: float = 0.05, noise: float = 0.0, lag: int = 0, seed: int = 0
    ) -> None:
        self.speeds, self.fixed_s, self.noise, self.lag = speeds, fixed_s, noise, lag
        self.launch_s: Sequence[float] = [0.0] * len(speeds(1))
        """What forward and backward cost each rank whatever its share; the balancer cannot tell it from the rest."""
        self.ranks = len(speeds(1))
        self.dice = np.random.default_rng(seed)
        self.schedules = [ShareSchedule() for _ in range(self.ranks)]
        self.logs = [Log() for _ in range(self.ranks)]
        self.balancers = [
            Balancer(
                schedule,
                world=SoloWorld(device=torch.device("cpu"), rank=rank, size=self.ranks),
                update_target_tokens=1000,
                log=log,
            )
            for rank, (schedule, log) in enumerate(zip(self.schedules, self.logs, strict=True))
        ]
        self.step_s: list[float] = []
        self._late: list[tuple[int, list[dict[str, float]], list[float], Shares]] = []

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._make_step(len(self.step_s) + 1)

    def shares(self, step: int) -> tuple[float, ...]:
        shares = self.schedules[0].at(step) or (1 / self.ranks,) * self.ranks
        return tuple(share / sum(shares) for share in shares)

    @property
    def decisions(self) -> list[SharesChanged]:
        return [event for event in self.logs[0].events if isinstance(event, SharesChanged)]

    def efficiency(self, step: int) -> float:
        """Speed in a step against the sum of what each rank could do alone with no fixed time."""
        best = 1 / sum(1 / each for each in self.speeds(step))
        return (best + self.fixed_s) / self.step_s[step - 1]

    def _make_step(self, step: int) -> None:
        for schedule in self.schedules:
            schedule.at(step + DEPTH)  # what is built ahead
        shares = self.shares(step)
        noise = self.dice.normal(1, self.noise, self.ranks).clip(0.5)
        computing = (np.array(self.launch_s) + np.array(self.speeds(step)) * shares) * noise
        self.step_s.append(float(computing.max()) + self.fixed_s)
        phases = [
            {"forward": each / 3, "backward": each * 2 / 3, "optimizer": self.fixed_s} for each in computing
        ]
        numbers = [0.0] * (NUMBERS_A_RANK * self.ranks)
        for balancer in self.balancers:
            for slot, number in balancer.report(step).items():
                numbers[slot] += float(np.float32(number))
        self._late.append((step, phases, numbers, shares))
        while len(self._late) > self.lag:
            done, spent, told, dealt = self._late.pop(0)
            for rank, balancer in enumerate(self.balancers):
                balancer.note(done, spent[rank], share=dealt[rank])
                balancer.hear(done, told)


def steady(*whole_s: float) -> Speeds:
    return lambda _: whole_s


@pytest.mark.parametrize("lag", [0, 2])
@pytest.mark.parametrize(
    "speeds", [(1.0, 3.0), (1.0, 1.4), (1.0, 8.0), (1.0, 1.0, 2.0), (0.5, 1.0, 1.5, 4.0)]
)
def test_ranks_reach_the_sum_of_their_speeds_within_two_hundred_steps(
    speeds: tuple[float, ...], lag: int
) -> None:
    run = Simulation(steady(*speeds), noise=0.05, lag=lag)
    run.run(220)
    late = range(200, 221)
    assert np.median([run.efficiency(step) for step in late]) > 0.92
    wanted = np.array([1 / each for each in speeds])
    assert run.shares(220) == pytest.approx(tuple(wanted / wanted.sum()), rel=0.06)
    for schedule in run.schedules[1:]:
        assert schedule.to_json() == run.schedules[0].to_json()


def test_one_to_three_is_reached_with_the_first_two_decisions() -> None:
    run = Simulation(steady(1.0, 3.0), fixed_s=0.0)
    run.run(WINDOW_STEPS * 2 + AHEAD_STEPS)
    assert run.efficiency(WINDOW_STEPS * 2 + AHEAD_STEPS) > 0.95


def test_a_host_that_becomes_slower_by_half_costs_its_missing_share_alone_after_a_hundred_steps() -> None:
    run = Simulation(lambda step: (1.0, 1.0) if step <= 205 else (1.0, 2.0), noise=0.05)
    run.run(205)
    assert not run.decisions
    run.run(180)
    assert run.efficiency(206) < 0.8
    assert np.median([run.efficiency(step) for step in range(305, 386)]) > 0.93
    # And when it has recovered, ranks have equal shares again, or nearly.
    run.speeds = steady(1.0, 1.0)
    run.run(200)
    assert run.shares(585) == pytest.approx((0.5, 0.5), abs=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ranks", [2, 8])
def test_even_ranks_stay_exactly_even_under_noise_of_ten_per_cent(ranks: int, seed: int) -> None:
    run = Simulation(steady(*[1.0] * ranks), noise=0.1, seed=seed)
    run.run(4000)
    assert run.decisions == []
    assert run.schedules[0].at(4001) == EQUAL


def test_uneven_ranks_are_left_alone_once_they_finish_together() -> None:
    run = Simulation(steady(1.0, 3.0), noise=0.1)
    run.run(3000)
    assert len(run.decisions) <= 3
    assert run.decisions[-1].step < 400


@pytest.mark.parametrize("launch_s", [(0.1, 0.1), (0.1, 0.3), (0.3, 0.9)])
def test_computing_that_no_share_shortens_is_approached_step_by_step(launch_s: tuple[float, float]) -> None:
    run = Simulation(steady(1.0, 3.0), noise=0.02)
    run.launch_s = launch_s
    run.run(600)
    best = min(max(launch_s[0] + part, launch_s[1] + 3 * (1 - part)) for part in np.linspace(0.01, 0.99, 500))
    assert np.median(run.step_s[-50:]) < 1.04 * (best + run.fixed_s)


def test_a_stall_of_single_steps_changes_nothing() -> None:
    run = Simulation(lambda step: (1.0, 1.0) if step % 7 else (1.0, 40.0))
    run.run(1000)
    assert run.decisions == []


def test_what_is_logged_says_who_does_what_from_which_step_on() -> None:
    run = Simulation(steady(1.0, 3.0))
    run.run(60)
    (event,) = run.decisions
    assert (event.step, event.first_step) == (40, 40 + AHEAD_STEPS)
    assert event.shares == pytest.approx((0.75, 0.25), abs=1e-4)
    assert event.tokens_per_s == pytest.approx((1000, 1000 / 3), rel=1e-4)
    assert event.fixed_s == pytest.approx((0.05, 0.05))
    assert event.window_steps == 40
    assert run.shares(event.first_step - 1) == (0.5, 0.5)


def tell(balancer: Balancer, step: int, numbers: list[float]) -> None:
    for number in range(step - WINDOW_STEPS, step):
        balancer.note(number, {"forward": 1.0}, share=0.5)
    balancer.hear(step, numbers)


def test_windows_in_which_a_rank_told_nothing_do_not_count() -> None:
    log: Any = Log()
    schedule = ShareSchedule()
    world = SoloWorld(device=torch.device("cpu"), size=2)
    balancer = Balancer(schedule, world=world, update_target_tokens=1000, log=log)
    assert balancer.report(20) == {}
    for step in (20, 40, 60, 80):
        tell(balancer, step, [0.0, 1.0, 0.0, 0.0])
        tell(balancer, step, [0.0, 1.0, 0.0, float("nan")])
    assert schedule.latest == EQUAL
    tell(balancer, 100, [0.0, 1.0, 0.0, 3.0])
    assert schedule.latest == EQUAL
    tell(balancer, 120, [0.0, 1.0, 0.0, 3.0])
    assert schedule.latest == pytest.approx((0.75, 0.25))


def test_shares_of_a_checkpoint_are_announced_with_their_speeds_unknown() -> None:
    log: Any = Log()
    world = SoloWorld(device=torch.device("cpu"), size=2)
    Balancer(ShareSchedule(), world=world, update_target_tokens=1, log=log).announce(7)
    assert log.events == []
    schedule = ShareSchedule([(3, (0.2, 0.8))])
    Balancer(schedule, world=world, update_target_tokens=1, log=log).announce(7)
    (event,) = log.events
    assert (event.step, event.first_step, event.shares, event.window_steps) == (7, 8, (0.2, 0.8), 0)
    assert all(map(isnan, event.tokens_per_s))
