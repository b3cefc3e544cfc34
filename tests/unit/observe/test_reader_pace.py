import numpy as np
import pytest
from numpy.typing import NDArray

from tandem.observe.reader_pace import ReaderPace, reader_pace

STEPS = 1500


def ahead(mean_s: float, *, spread: float, rest_s: float = 1.0, depth: int = 4) -> ReaderPace:
    """The pace as told of one rank whose reader works ahead, and whose step takes `rest_s` but for its data."""
    random = np.random.default_rng(3)
    batch = np.maximum(0.0, mean_s * (1 + spread * random.standard_normal(STEPS)))
    rest = rest_s * (1 + 0.1 * random.standard_normal(STEPS))
    data, taken = np.zeros(STEPS), np.zeros(depth)
    now = ready = 0.0
    for step in range(STEPS):
        ready = max(ready, taken[step % depth]) + batch[step]
        begin = max(now, ready)
        taken[step % depth] = begin
        data[step] = begin - now
        now = begin + rest[step]
    return told(data, rest)


def told(data: NDArray[np.float64], rest: NDArray[np.float64]) -> ReaderPace:
    rows = [np.asarray(each[None, :], np.float32) for each in (data, data + rest)]
    return reader_pace(*rows, is_next=np.ones(STEPS - 1, np.bool_))


@pytest.mark.parametrize(("mean_s", "spread"), [(1.5, 0.05), (1.5, 0.3), (1.1, 0.3), (1.0, 0.3)])
def test_the_mean_time_for_a_batch_is_told_from_waits(mean_s: float, spread: float) -> None:
    assert ahead(mean_s, spread=spread).batch_s == pytest.approx(mean_s, rel=0.07)


def test_a_reader_that_is_late_now_and_then_is_told_to_be_close_behind() -> None:
    pace = ahead(0.8, spread=0.2, depth=1)
    assert 0.1 < pace.late < 0.2
    assert not pace.is_shown
    assert pace.batch_s == pytest.approx(0.8, rel=0.1)


def test_a_reader_that_keeps_up_sets_no_pace() -> None:
    assert ahead(0.6, spread=0.1).batch_s == 0
    assert ahead(0.6, spread=0.1).late < 0.05


def test_a_reader_that_begins_when_it_is_asked_is_not_behind() -> None:
    random = np.random.default_rng(4)
    pace = told(0.5 + 0.05 * random.random(STEPS), 1 + 0.1 * random.random(STEPS))
    assert pace.batch_s == 0
    assert pace.late == 1


def test_waits_that_do_not_follow_one_another_say_nothing() -> None:
    data = np.where(np.arange(STEPS) % 2, 0.0, 0.5)
    assert told(data, np.ones(STEPS)).batch_s == 0
