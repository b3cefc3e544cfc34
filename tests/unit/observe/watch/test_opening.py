from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, started, training, write_log
from tests.unit.observe.watch.host_story import described, sampled, sampling, write_samples

from tandem.observe.watch import opening
from tandem.observe.watch.opening import open_run
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import CheckpointFailed
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import follow
from tandem.runlog.record import Record


def go_on(run: Path, state: WatchState, offsets: dict[Path, int]) -> list[Record]:
    records = list(follow(run, lambda: True, offsets=offsets))
    for record in records:
        state.apply(record)
    return records


def test_what_was_told_at_the_opening_is_not_told_again(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, list(training(teller, steps=300, every=100)))
    write_samples(tmp_path, list(sampling("h1", seconds=20)))
    state, offsets = open_run(tmp_path)
    assert go_on(tmp_path, state, offsets) == []
    write_log(tmp_path, [teller.step(301), teller.step(301, rank=1)])
    assert [each.rank for each in go_on(tmp_path, state, offsets)] == [0, 1]
    assert state.step == 301
    assert state.spent.training_s == pytest.approx(301 * 0.25)
    assert len(state.hosts["h1"].moments) == 20


def test_a_line_that_is_not_whole_yet_is_left_for_later(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started()), teller.step(1), teller.step(1, rank=1), teller.step(2)])
    path = RunLayout(tmp_path).rank_log(0)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    state, offsets = open_run(tmp_path)
    assert state.step == 1
    path.write_bytes(whole)
    assert len(go_on(tmp_path, state, offsets)) == 1
    assert state.step == 2


def test_troubles_at_the_end_of_other_ranks_are_told_and_their_steps_passed_over(tmp_path: Path) -> None:
    teller = Teller()
    records = [teller.tell(started()), *(teller.step(step, rank=rank) for step in (1, 2) for rank in (0, 1))]
    write_log(tmp_path, [*records, teller.tell(CheckpointFailed(step=2, reason="disk full"), rank=1)])
    state, _ = open_run(tmp_path)
    assert [each.text for each in state.troubles] == ["checkpoint of step 2 could not be written: disk full"]


def test_of_a_long_log_of_another_rank_only_the_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "END_BYTES", 2_000)
    teller = Teller()
    failed = [teller.tell(CheckpointFailed(step=step, reason="full"), rank=1) for step in range(1, 100)]
    write_log(tmp_path, [teller.tell(started()), *failed])
    (trouble,) = open_run(tmp_path)[0].troubles
    assert trouble.text == "checkpoint of step 99 could not be written: full"
    assert trouble.times < 20


def test_a_host_is_known_by_its_last_description_however_far_back_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "END_BYTES", 2_000)
    write_log(tmp_path, [Teller().tell(started())])
    write_samples(tmp_path, [*sampling("h1", seconds=30, gpus=2), *sampling("h1", seconds=300, gpus=4)])
    state, _ = open_run(tmp_path)
    host = state.hosts["h1"]
    assert host.described == described(4)
    assert host.last is not None
    assert host.last.gpu_utilisation == sampled(300, gpus=4).gpu_utilisation


def test_samples_of_another_shape_are_not_mixed_in(tmp_path: Path) -> None:
    write_log(tmp_path, [Teller().tell(started())])
    write_samples(tmp_path, [*sampling("h1", seconds=30, gpus=2), *sampling("h1", seconds=5, gpus=4)])
    state, _ = open_run(tmp_path)
    assert len(state.hosts["h1"].moments) == 5


def test_a_run_without_a_record_has_not_begun(tmp_path: Path) -> None:
    state, offsets = open_run(tmp_path)
    assert (state.run, state.doing, offsets) == (tmp_path.name, "starting", {})
