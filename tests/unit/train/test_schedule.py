from typing import Any

import pytest

from tandem.config import OptimSection
from tandem.train.schedule import SCHEDULES, Schedule, build_schedule, describe_schedule


def build(*, max_steps: int = 100, width: int = 512, **optim: Any) -> Schedule:
    return build_schedule(OptimSection(**optim), width=width, max_steps=max_steps)


def test_the_transformer_policy_peaks_where_the_paper_says() -> None:
    rate = build(schedule="transformer", warmup_steps=8000, max_steps=300_000)
    assert rate(8000) == pytest.approx(9.882e-4, rel=1e-4)
    assert rate(4000) == pytest.approx(rate(8000) / 2)
    assert rate(32_000) == pytest.approx(rate(8000) / 2)
    assert max(range(1, 20_000), key=rate) == 8000


def test_inverse_square_root_halves_at_four_times_the_warm_up() -> None:
    rate = build(schedule="inverse_sqrt", learning_rate=1e-3, warmup_steps=10)
    assert [rate(step) for step in (1, 10, 40)] == pytest.approx([1e-4, 1e-3, 5e-4])


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_rises_in_a_straight_line_to_its_peak(name: str) -> None:
    rate = build(schedule=name, warmup_steps=10)
    assert [rate(step) / rate(10) for step in (1, 5)] == pytest.approx([0.1, 0.5])
    assert rate(10) == max(map(rate, range(1, 101)))


@pytest.mark.parametrize(("name", "half_way"), [("cosine", 0.5), ("linear", 0.5), ("constant", 1.0)])
def test_schedules_that_end_reach_zero_just_after_the_last_step(name: str, half_way: float) -> None:
    rate = build(schedule=name, learning_rate=1e-3, warmup_steps=11, max_steps=110)
    assert rate(61) == pytest.approx(half_way * 1e-3)
    assert rate(110) > 0
    assert rate(111) == pytest.approx(0 if name != "constant" else 1e-3, abs=1e-12)


@pytest.mark.parametrize("name", ["cosine", "linear", "constant"])
def test_without_warm_up_the_first_step_is_at_the_peak(name: str) -> None:
    rate = build(schedule=name, learning_rate=1e-3, warmup_steps=0, max_steps=1000)
    assert rate(1) == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_cool_down_takes_the_last_steps_to_zero_in_a_straight_line(name: str) -> None:
    plain = build(schedule=name, warmup_steps=10)
    cooled = build(schedule=name, warmup_steps=10, cooldown_steps=4)
    assert [cooled(step) / plain(step) for step in range(95, 101)] == pytest.approx(
        [1, 1, 0.8, 0.6, 0.4, 0.2]
    )
    assert cooled(101) == 0


def test_a_schedule_can_be_told_in_words() -> None:
    optim = OptimSection(schedule="transformer", warmup_steps=8000, cooldown_steps=500)
    told = describe_schedule(optim, width=512, max_steps=1000)
    assert told == (
        "transformer: 2 · 512^-0.5 · min(step^-0.5, step · 8000^-1.5); "
        "the last 500 steps fall to zero in a straight line"
    )
