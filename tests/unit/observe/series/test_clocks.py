"""Clocks of hosts that nobody compared, and clocks that were set, do not change how long a run took."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.unit.observe.series.slow import BEGUN_NS, build_process, build_start, build_step
from tests.unit.observe.series.test_sampled import DESCRIBED, sample

from tandem.observe.series.columns import Series
from tandem.observe.series.fold import read_series
from tandem.runlog.event import Event, ExchangeProbed, RunFinished
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

STEPS = 40
END = RunFinished(reason="reached 40 steps")
Clock = Callable[[float], float]
"""What a wall clock shows at a true time."""


def right(at_s: float) -> float:
    return at_s


def write(
    path: Path, *events: tuple[float, Event], clock: Clock = right, rank: int | None = None, host: str = "a"
) -> None:
    """Log what happened at true times; the monotonic clock of a host began 500 seconds before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = len(path.read_bytes().splitlines()) if path.exists() else 0
    with path.open("ab") as file:
        for sequence, (at_s, event) in enumerate(events, before):
            record = Record(
                time_ns=BEGUN_NS + round(1e9 * clock(at_s)),
                clock_s=500.0 + at_s,
                rank=rank,
                host=None if rank is not None else host,
                sequence=sequence,
                event=event,
            )
            file.write(to_line(record))


def write_rank(
    run: Path,
    rank: int,
    host: str,
    *,
    clock: Clock = right,
    begin_s: float = 10.0,
    first: int = 1,
    probed: int = 0,
) -> None:
    """A process that makes steps of half a second; rank 0 says when training starts."""
    events: list[tuple[float, Event]] = [(begin_s, build_process(2, host))]
    if rank == 0:
        events.append((begin_s + 1.0, build_start(first - 1, 2)))
    for number in range(STEPS):
        at_s = begin_s + 1.5 + 0.5 * number + 0.003 * (rank * number % 5)
        step = build_step(first + number, phases={"forward": 0.5})
        events.append((at_s, step))
        if first + number == probed:
            probe = ExchangeProbed(step=probed, synchronised_s=0.5, unsynchronised_s=0.4, exchange_s=0.05)
            events.append((at_s + 0.001, probe))
    events.append((begin_s + 2.0 + 0.5 * STEPS, END))
    write(RunLayout(run).rank_log(rank), *events, clock=clock, rank=rank)


def set_at(at_s: float, by_s: float) -> Clock:
    return lambda true_s: true_s + by_s * (true_s > at_s)


def expect_whole(series: Series, *, end_s: float) -> None:
    assert series.begun_ns == pytest.approx(BEGUN_NS + 10_000_000_000, abs=20_000_000, rel=0)
    assert series.end_s == pytest.approx(end_s, abs=0.1)
    assert np.isfinite(series.ranks.duration_s).all()


@pytest.mark.parametrize("ahead_s", [200.0, -200.0, 3.0])
def test_hosts_that_nobody_examined_are_brought_together_by_the_steps_of_their_ranks(
    tmp_path: Path, ahead_s: float
) -> None:
    for begin_s, first in ((10.0, 1), (60.0, 21)):
        write_rank(tmp_path, 0, "a", begin_s=begin_s, first=first)
        write_rank(tmp_path, 1, "b", clock=lambda at_s: at_s + ahead_s, begin_s=begin_s, first=first)
    samples = [(12.0 + second, sample()) for second in range(20)]
    write(
        RunLayout(tmp_path).samples_log("b"),
        (11.0, DESCRIBED),
        *samples,
        clock=lambda at_s: at_s + ahead_s,
        host="b",
    )

    series = read_series(tmp_path)

    expect_whole(series, end_s=72.0)
    assert series.redone_steps == 20
    assert series.samples["b"].time_s[0] == pytest.approx(2.0, abs=0.05)


def test_a_file_whose_clock_nothing_tells_does_not_make_the_run_longer(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, "a")
    write_rank(tmp_path, 1, "a")
    write(RunLayout(tmp_path).samples_log("c"), (900.0, DESCRIBED), (901.0, sample()), host="c")
    write(RunLayout(tmp_path).host_log("c"), (-900.0, END), host="c")

    expect_whole(read_series(tmp_path), end_s=22.0)


@pytest.mark.parametrize("by_s", [300.0, -300.0, -2.0])
def test_a_clock_that_was_set_while_the_run_went_on_is_straightened(tmp_path: Path, by_s: float) -> None:
    clock = set_at(20.0, by_s)
    for begin_s, first in ((10.0, 1), (60.0, 21)):
        for rank in (0, 1):
            write_rank(tmp_path, rank, "a", clock=clock, begin_s=begin_s, first=first, probed=20)
    samples = [(12.0 + second, sample()) for second in range(20)]
    write(RunLayout(tmp_path).samples_log("a"), (11.0, DESCRIBED), *samples, clock=clock)

    series = read_series(tmp_path)

    expect_whole(series, end_s=72.0)
    assert (series.set_s, series.ahead_s) == pytest.approx((abs(by_s), by_s))
    assert np.diff(series.steps.time_s).max() < 41.0
    assert series.probes.step.tolist() == [20, 20]
    assert np.diff(series.samples["a"].time_s) == pytest.approx(np.ones(19))


def test_a_clock_that_was_set_between_the_head_and_its_ranks_counts_once(tmp_path: Path) -> None:
    clock = set_at(8.0, -30.0)
    write(RunLayout(tmp_path).host_log("a"), (0.0, build_process(2, "a")), (33.0, END), clock=clock)
    write_rank(tmp_path, 0, "a", clock=clock)
    write_rank(tmp_path, 1, "b")

    series = read_series(tmp_path)

    assert series.end_s == pytest.approx(32.0, abs=1.1)
    assert series.starts[0][0] == pytest.approx(11.0)
    assert series.set_s == pytest.approx(30.0)


@pytest.mark.parametrize("by_s", [300.0, -300.0, -15.0])
@pytest.mark.parametrize("at_s", [11.2, 31.5])
def test_a_clock_that_was_set_before_the_first_step_or_after_the_last_counts_once(
    tmp_path: Path, at_s: float, by_s: float
) -> None:
    write_rank(tmp_path, 0, "a")
    write_rank(tmp_path, 1, "b", clock=set_at(at_s, by_s))

    expect_whole(read_series(tmp_path), end_s=22.0)


def test_a_clock_that_was_set_early_on_does_not_make_the_run_longer(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, "a")
    write_rank(tmp_path, 1, "b", clock=set_at(14.0, 300.0))
    path = RunLayout(tmp_path).rank_log(1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    expect_whole(read_series(tmp_path), end_s=22.0)


def test_a_host_whose_clock_was_set_says_when_it_began_and_not_when_it_ended(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, "a")
    write_rank(tmp_path, 1, "b", clock=set_at(20.0, 300.0))
    path = RunLayout(tmp_path).rank_log(1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    series = read_series(tmp_path)

    expect_whole(series, end_s=22.0)
    assert series.set_s == 0.0


def test_a_sampler_whose_clock_was_set_between_two_processes_does_not_make_the_run_longer(
    tmp_path: Path,
) -> None:
    clock = set_at(50.0, 300.0)
    for begin_s, first in ((10.0, 1), (60.0, 21)):
        write_rank(tmp_path, 0, "a", begin_s=begin_s, first=first)
        write_rank(tmp_path, 1, "b", clock=clock, begin_s=begin_s, first=first)
    samples = [(12.0 + second, sample()) for second in range(65)]
    write(RunLayout(tmp_path).samples_log("b"), (11.0, DESCRIBED), *samples, clock=clock, host="b")

    expect_whole(read_series(tmp_path), end_s=72.0)


def test_a_clock_that_jumps_again_and_again_is_not_one_clock(tmp_path: Path) -> None:
    events = [(10.0 * number, RunFinished(reason=str(number))) for number in range(8)]
    write(RunLayout(tmp_path).host_log("a"), *events, clock=lambda at_s: 2 * at_s)
    assert read_series(tmp_path).end_s == pytest.approx(140.0)
