"""What the time of the last steps went into."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, started, step_event, write_log

from tandem.observe.series.fold import read_series
from tandem.observe.split import split_steps
from tandem.observe.watch.opening import open_run
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import StepFinished
from tandem.runlog.record import Record

STEP = {"data": 0.01, "forward": 0.1, "backward": 0.2, "exchange": 0.0, "optimizer": 0.03, "other": 0.02}


def told(waits: Mapping[int, float], *, ranks: int | None = None, steps: int = 60) -> list[Record]:
    """A run in which each of these ranks waits so long for gradients, and computes the less."""
    teller = Teller()
    longest = max(waits.values())
    records = [teller.tell(replace(started(), ranks=ranks or len(waits)))]
    for number in range(1, steps + 1):
        for rank, wait_s in waits.items():
            phases = STEP | {"exchange": wait_s, "backward": 0.2 + longest - wait_s}
            event = replace(step_event(number), phases=phases, duration_s=sum(phases.values()))
            records.append(teller.tell(event, after_s=0.0 if rank else 0.5, rank=rank))
    return records


def shares(records: list[Record]) -> dict[str, float]:
    state = WatchState()
    for record in records:
        state.apply(record)
    return state.anatomy.shares(state.recent, state.started)


def test_waiting_for_a_slow_rank_is_not_the_networks() -> None:
    parts = shares(told({0: 0.44, 1: 0.04}))
    assert parts["network"] == pytest.approx(0.04 / 0.8)
    assert parts["slowest rank"] == pytest.approx(0.2 / 0.8)
    assert sum(parts.values()) == pytest.approx(1.0)


def test_a_slower_rank_leaves_the_networks_time_as_it_is() -> None:
    """Only shares fall, as the step is longer."""
    for late_s in (0.0, 0.1, 1.0):
        parts = shares(told({0: 0.05 + late_s, 1: 0.05, 2: 0.05 + late_s}))
        assert parts["network"] * (0.41 + late_s) == pytest.approx(0.05)


def test_without_one_of_the_ranks_the_network_is_not_told_from_the_slowest() -> None:
    parts = shares(told({0: 0.44, 2: 0.3}, ranks=3))
    assert not {"network", "slowest rank"} & parts.keys()
    assert parts["waiting"] == pytest.approx(0.44 / 0.8)


def test_one_rank_alone_shows_its_phases() -> None:
    assert list(shares(told({0: 0.0}))) == list(STEP)


def test_nothing_is_known_before_the_first_step() -> None:
    assert shares(told({0: 0.1, 1: 0.2}, steps=0)) == {}


def test_a_restart_begins_anew() -> None:
    records = told({0: 0.44, 1: 0.04})
    again = Teller(records[-1].time_ns).tell(replace(started(60), ranks=2))
    assert shares([*records, again]) == {}


def test_a_run_that_is_opened_shows_what_the_report_splits(tmp_path: Path) -> None:
    records = told({0: 0.44, 1: 0.04, 2: 0.1}, steps=90)
    write_log(tmp_path, records)
    state, _ = open_run(tmp_path)
    parts = state.anatomy.shares(state.recent, state.started)
    assert parts == pytest.approx(shares(records), rel=1e-5)
    split = split_steps(read_series(tmp_path))
    assert split is not None
    assert parts["network"] == pytest.approx(split.network_s.sum() / split.step_s.sum(), rel=1e-5)
    assert parts["slowest rank"] == pytest.approx(split.straggler_s.sum() / split.step_s.sum(), rel=1e-5)


def test_steps_that_a_rank_has_not_told_yet_are_left_out() -> None:
    records = told({0: 0.44, 1: 0.04}, steps=60)
    late = [
        record
        for record in records
        if not (record.rank == 1 and isinstance(record.event, StepFinished) and record.event.step > 40)
    ]
    assert shares(late) == pytest.approx(shares(records))


def test_standstills_are_no_computing() -> None:
    records = told({0: 0.05, 1: 0.05}, steps=60)
    stopped = [
        replace(record, event=replace(record.event, phases={**record.event.phases, "backward": 5.0}))
        if isinstance(record.event, StepFinished) and record.event.step == 30
        else record
        for record in records
    ]
    parts = shares(stopped)
    assert parts["standstill"] > 0.1
    assert sum(parts.values()) == pytest.approx(1.0)
