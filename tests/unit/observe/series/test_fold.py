"""Reading a log fast gives what reading it record by record gives, whatever happened to run and log."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.observe.series.slow import (
    BEGUN_NS,
    LogMaker,
    build_process,
    build_start,
    build_step,
    fold_slowly,
)

from tandem.errors import TandemError
from tandem.observe.series import fold
from tandem.observe.series.columns import PHASES, Series
from tandem.observe.series.fold import read_series
from tandem.runlog.event import (
    BatchSplit,
    CheckpointRejected,
    CheckpointRemoved,
    CheckpointWritten,
    DeviceMeasured,
    Event,
    EventsDropped,
    HostExamined,
    RoundStarted,
    RunFinished,
    RunImported,
    SampleTranslated,
    ScoreImported,
    StepFinished,
    TrainingFinished,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

CLOSE = 2e-6


def write(path: Path, *events: tuple[float, Event], host: str | None = None, rank: int | None = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rank = rank if host is None else None
    with path.open("ab") as file:
        for sequence, (at_s, event) in enumerate(events):
            time_ns = BEGUN_NS + round(1e9 * at_s)
            record = Record(
                time_ns=time_ns, clock_s=at_s, rank=rank, host=host, sequence=sequence, event=event
            )
            file.write(to_line(record))


def write_rank(run: Path, *events: tuple[float, Event], rank: int = 0) -> None:
    write(RunLayout(run).rank_log(rank), *events, rank=rank)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_log_folds_as_it_does_record_by_record(tmp_path: Path, seed: int) -> None:
    LogMaker(tmp_path, seed).write()
    series, slow = read_series(tmp_path), fold_slowly(tmp_path)
    events = [event for _, event in slow.steps.values()]
    assert series.steps.step.tolist() == list(slow.steps)
    for name in ("epoch", "skipped", "target_tokens", "source_tokens", "pairs"):
        assert getattr(series.steps, name).tolist() == [getattr(event, name) for event in events]
    for name in ("loss", "nll", "learning_rate", "gradient_norm", "duration_s"):
        expected = [getattr(event, name) for event in events]
        np.testing.assert_allclose(getattr(series.steps, name), expected, rtol=1e-14)
    times_s = [(time_ns - series.begun_ns) / 1e9 for time_ns, _ in slow.steps.values()]
    np.testing.assert_allclose(series.steps.time_s, times_s, atol=1e-6)
    assert series.damaged == slow.damaged
    assert series.redone_steps == len(slow.redone)
    assert series.redone_s == pytest.approx(sum(slow.redone))
    assert [each.valid_loss for each in series.evaluations] == list(slow.losses.values())
    keys = sorted(slow.probes)
    assert list(zip(series.probes.step.tolist(), series.probes.rank.tolist(), strict=True)) == keys
    expected = [slow.probes[key].synchronised_s for key in keys]
    np.testing.assert_allclose(series.probes.synchronised_s, expected)
    for rank in range(series.ranks.ranks):
        check_rank(series, rank, slow.ranks.get(rank, {}))


def check_rank(series: Series, rank: int, steps: dict[int, StepFinished]) -> None:
    held = [steps.get(step) for step in series.steps.step.tolist()]
    expected = [event.duration_s if event else math.nan for event in held]
    np.testing.assert_allclose(series.ranks.duration_s[rank], expected, rtol=CLOSE)
    expected = [event.sent_bytes if event else math.nan for event in held]
    np.testing.assert_allclose(series.ranks.sent_bytes[rank], expected)
    for name in PHASES:
        expected = [event.phases.get(name, math.nan) if event else math.nan for event in held]
        np.testing.assert_allclose(series.ranks.phases[name][rank], expected, rtol=CLOSE)


def test_several_processes_read_what_one_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LogMaker(tmp_path, 3).write()
    alone = read_series(tmp_path)
    monkeypatch.setattr(fold, "_PLAIN_BYTES", 0)
    monkeypatch.setattr(fold, "_cores", lambda: 2)
    shares: list[float] = []
    beside = read_series(tmp_path, on_progress=shares.append)
    assert alone.ranks.ranks > 1
    np.testing.assert_array_equal(alone.ranks.duration_s, beside.ranks.duration_s)
    np.testing.assert_array_equal(alone.steps.loss, beside.steps.loss)
    assert alone.marks == beside.marks
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_no_log_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no run log in"):
        read_series(tmp_path)


def test_a_run_that_has_hardly_begun_has_no_steps(tmp_path: Path) -> None:
    write_rank(tmp_path, (0.0, build_process(1)))
    series = read_series(tmp_path)
    assert len(series.steps) == 0
    assert series.ranks.duration_s.shape == (1, 0)
    assert (series.is_closed, series.ended, series.started) == (False, "", None)
    assert (series.card, dict(series.recipe)) == (None, {})


def test_an_empty_file_is_a_run_of_nothing(tmp_path: Path) -> None:
    RunLayout(tmp_path).log.mkdir()
    RunLayout(tmp_path).rank_log(0).touch()
    assert read_series(tmp_path).end_s == 0.0


def test_the_end_is_that_of_training_until_it_goes_on(tmp_path: Path) -> None:
    finished = TrainingFinished(step=2, tokens=9, reason="reached 2 steps", duration_s=1.0)
    write_rank(tmp_path, (0.0, build_process(1)), (1.0, build_start(0, 1)), (2.0, build_step(1)))
    write_rank(tmp_path, (3.0, finished), (3.5, RunFinished(reason="reached 2 steps")))
    write(RunLayout(tmp_path).host_log("alpha"), (4.0, RunFinished(reason="completed")), host="alpha")
    ended = read_series(tmp_path)
    assert (ended.is_closed, ended.ended, ended.finished) == (True, "reached 2 steps", finished)
    write_rank(tmp_path, (9.0, build_process(1)), (9.5, build_start(1, 1)))
    going_on = read_series(tmp_path)
    assert (going_on.is_closed, going_on.ended, going_on.finished) == (False, "", None)
    assert [time_s for time_s, _ in going_on.starts] == [1.0, 9.5]


def test_clocks_of_hosts_are_brought_together_by_the_ranks_they_had(tmp_path: Path) -> None:
    examined = HostExamined(
        host="10.0.0.2",
        address="10.0.0.2",
        interface="eth0",
        interface_bits_per_s=0,
        tandem="0.1.0",
        python="3.11.9",
        torch="2.13.0",
        cores=2,
        memory_bytes=1,
        gpus=(),
        gpu_memory_bytes=0,
        clock_offset_s=100.0,
        clock_uncertainty_s=0.1,
        disk_free_bytes=1,
        disk_write_bytes_per_s=1.0,
    )
    first = replace(examined, host="10.0.0.1", clock_offset_s=0.0)
    hosts = ("10.0.0.1", "10.0.0.2")
    started = RoundStarted(
        round=1, hosts=hosts, workers=dict.fromkeys(hosts, 1), address="10.0.0.1", interfaces=()
    )
    write(RunLayout(tmp_path).host_log("a"), (0.0, first), (0.0, examined), (1.0, started), host="a")
    write_rank(tmp_path, (2.0, build_process(2, "a")), (3.0, build_start(0, 2)), (4.0, build_step(1)))
    lost = DeviceMeasured(device="cpu", precision="fp32", flops_per_s=1.0, duration_s=0.1)
    write_rank(tmp_path, (102.0, build_process(2, "b")), (102.5, lost), (104.0, build_step(1)), rank=1)
    series = read_series(tmp_path)
    assert [mark.time_s for mark in series.marks if mark.rank == 1] == [2.0, 2.5]
    assert series.end_s == 4.0
    assert series.ranks.hosts == ("a", "b")
    assert series.devices == (lost,)
    assert not np.isnan(series.ranks.duration_s).any()


def test_lines_that_were_gathered_twice_count_once(tmp_path: Path) -> None:
    steps = [(1.0 + step, build_step(step)) for step in range(1, 6)]
    write_rank(tmp_path, (0.0, build_process(1)), (1.0, build_start(0, 1)), *steps)
    path = RunLayout(tmp_path).rank_log(0)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, *lines[-3:]]))
    series = read_series(tmp_path)
    assert series.steps.step.tolist() == [1, 2, 3, 4, 5]
    assert series.redone_steps == 0


def test_a_clock_that_was_set_back_stands_still(tmp_path: Path) -> None:
    times_s = (2.0, 3.0, 1.5, 2.5, 4.0)
    steps = [(at_s, build_step(step)) for step, at_s in enumerate(times_s, 1)]
    write_rank(tmp_path, (0.0, build_process(1)), (1.0, build_start(0, 1)), *steps)
    series = read_series(tmp_path)
    assert series.steps.step.tolist() == [1, 2, 3, 4, 5]
    assert series.steps.time_s.tolist() == [2.0, 3.0, 3.0, 3.0, 4.0]


def test_an_imported_run_folds_with_its_gaps_and_scores(tmp_path: Path) -> None:
    imported = RunImported(tool="openseq2seq", files=("a.log",), times="steps", step_kind="mean", facts={})
    score = ScoreImported(step=200, set="valid", name="Eval_BLEU_Score", value=0.37, meaning="no BLEU")
    write_rank(tmp_path, (0.0, imported), (1.0, build_step(100)), (2.0, build_step(200)), (2.5, score))
    write_rank(tmp_path, (3.0, build_step(100)), (4.0, build_step(300)))
    series = read_series(tmp_path)
    assert series.imported == imported
    assert series.steps.step.tolist() == [100, 300]
    assert series.redone_steps == 2
    assert dict(series.evaluations[0].scores) == {"Eval_BLEU_Score": 0.37}
    assert math.isnan(series.evaluations[0].valid_loss)


def test_checkpoints_translations_splits_and_losses_of_the_writer(tmp_path: Path) -> None:
    def written(step: int, size: int) -> CheckpointWritten:
        return CheckpointWritten(
            step=step, folder=f"c-{step}", bytes=size, blocked_s=0.1, write_s=0.2, files={"m": size}
        )

    def translated(step: int) -> SampleTranslated:
        return SampleTranslated(step=step, set="valid", number=0, source="a", reference="b", hypothesis="c")

    split = BatchSplit(step=1, target_tokens=9, pieces=2)
    write_rank(tmp_path, *((0.5, split) for _ in range(300)))
    write_rank(tmp_path, (1.0, written(1, 5)), (2.0, written(2, 5)), (3.0, written(1, 6)))
    write_rank(tmp_path, (3.2, written(3, 7)), (3.4, written(4, 7)))
    for step in (3, 4):
        write_rank(tmp_path, (3.6, CheckpointRejected(folder=f"c-{step}", reason="torn")))
    write_rank(tmp_path, (3.8, written(4, 8)))
    write_rank(tmp_path, (4.0, CheckpointRemoved(step=2, folder="c-2")), (4.0, translated(1)))
    write_rank(tmp_path, (5.0, translated(2)), (6.0, EventsDropped(count=3, since_ns=1)))
    write_rank(tmp_path, (7.0, written(1, 99)), rank=1)
    series = read_series(tmp_path)
    assert [(each.folder, each.bytes, each.is_removed, each.is_rejected) for each in series.checkpoints] == [
        ("c-2", 5, True, False),
        ("c-1", 6, False, False),
        ("c-3", 7, False, True),
        ("c-4", 8, False, False),
    ]
    assert series.translations == (translated(2),)
    assert series.dropped == 3
    assert sum(isinstance(mark.event, BatchSplit) for mark in series.marks) == 100


def test_recipe_and_card_come_from_the_folder_where_the_log_has_none(tmp_path: Path) -> None:
    write_rank(tmp_path, (0.0, build_process(1)))
    (tmp_path / "recipe.yaml").write_text("name: first\ndata:\n  folder: prepared\n")
    (tmp_path / "prepared").mkdir()
    card = Path(__file__).parents[1] / "card.json"
    (tmp_path / "prepared" / "card.json").write_bytes(card.read_bytes())
    series = read_series(tmp_path)
    assert series.recipe["name"] == "first"
    assert series.card is not None
    (tmp_path / "recipe.yaml").write_text("name: [\n")
    assert dict(read_series(tmp_path).recipe) == {}


def test_ranks_whose_logs_are_elsewhere_have_rows_without_numbers(tmp_path: Path) -> None:
    write_rank(tmp_path, (0.0, build_process(2)), (1.0, build_step(1)))
    series = read_series(tmp_path)
    assert series.ranks.duration_s.shape == (2, 1)
    assert np.isnan(series.ranks.duration_s[1]).all()
    assert series.ranks.hosts[1] == ""


def test_a_start_of_training_says_how_many_ranks_there_are(tmp_path: Path) -> None:
    write_rank(tmp_path, (0.0, build_start(0, 3)), (1.0, build_step(1)))
    assert read_series(tmp_path).ranks.ranks == 3


def test_processes_keep_their_ranks_where_the_first_left_no_log(tmp_path: Path) -> None:
    write_rank(tmp_path, (0.0, build_process(2)), rank=1)
    assert read_series(tmp_path).process_ranks == (1,)
