import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.unit.observe.imports.printing import whole
from tests.unit.observe.story import Teller, checkpoint, finished, started, training, write_log
from tests.unit.observe.watch.host_story import described, sampled, sampling, write_samples

from tandem.observe.imports import import_openseq2seq
from tandem.observe.series.fold import read_series
from tandem.observe.watch.standing import state_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import (
    BatchSplit,
    CheckpointFailed,
    EvaluationStarted,
    LossMeasured,
    RunFinished,
    RunStarted,
    ScoreImported,
    StageStarted,
    StepFinished,
    StopAsked,
    WorkersLost,
)
from tandem.runlog.reader import read_records
from tandem.runlog.record import Record

SECOND = 1_000_000_000
GOLDEN = Path("tests/golden")


def told(state: WatchState) -> dict[str, object]:
    """All that a display could show."""
    recent = state.recent
    return {
        **{
            name: getattr(state, name)
            for name in ("recipe", "imported", "doing", "stage", "started", "ended", "is_closed")
        },
        **{name: getattr(state, name) for name in ("step", "epoch", "tokens")},
        "spent": asdict(state.spent),
        "wall_s": state.wall_s,
        "recent": [recent.loss, recent.nll, recent.step_s, recent.tokens_per_s, recent.phases, recent.paces],
        "last": [recent.last.learning_rate, recent.last.gradient_norm] if recent.last else [],
        "curve": state.curve.values(10_000),
        "pace": state.pace.values(10_000),
        "evaluations": list(map(asdict, state.evaluations)),
        "samples": state.samples,
        "troubles": [(each.times, each.text, each.time_ns) for each in state.troubles],
        "hosts": {
            name: (host.described, list(map(asdict, host.moments))) for name, host in state.hosts.items()
        },
    }


def differences(one: object, other: object, path: str = "") -> list[str]:
    """Places where two are not alike; numbers may differ by what single precision and the order of sums do."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [each for key in one for each in differences(one[key], other[key], f"{path}.{key}")]
    if isinstance(one, str) or not isinstance(one, Sequence | Iterable):
        same = one == pytest.approx(other, rel=1e-6, nan_ok=True) if isinstance(one, float) else one == other
        return [] if same else [f"{path}: {one} is not {other}"]
    if not isinstance(one, dict) and isinstance(other, Iterable):
        ours, theirs = list(one), list(other)
        if len(ours) == len(theirs):
            pairs = enumerate(zip(ours, theirs, strict=True))
            return [each for at, pair in pairs for each in differences(*pair, f"{path}[{at}]")]
    return [f"{path}: {one} is not {other}"]


def both(run: Path) -> tuple[WatchState, WatchState]:
    """As the columns tell it, and as the records do; of steps those of rank 0, as a display reads them."""
    folded = WatchState(run=run.name)
    for record in read_records(run):
        if not record.rank or not isinstance(record.event, StepFinished):
            folded.apply(record)
    return state_of(read_series(run)), folded


def check(run: Path, *, but: tuple[str, ...] = ()) -> None:
    """Both tell the same, but for these."""
    columns, folded = both(run)
    found = differences(told(columns), told(folded))
    # A translated sentence has no time in a series.
    assert columns.last_time_ns == pytest.approx(folded.last_time_ns, abs=100)
    assert [each for each in found if not each.startswith(but)] == []


def process(world: int = 2) -> RunStarted:
    return RunStarted(
        run="first", tandem="0", command=(), recipe="", world_size=world, host="alpha", python="3", torch="2"
    )


def test_a_run_that_went_well_is_told_alike(tmp_path: Path) -> None:
    teller = Teller()
    records = [teller.tell(process()), *training(teller, steps=650, every=100)]
    end = [teller.tell(finished(650)), teller.tell(RunFinished(reason="completed"))]
    write_log(tmp_path, [*records, *end])
    check(tmp_path)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 60, 210, 211, 212, 213, 214, 215, 216, 217, 330])
def test_a_run_is_told_alike_wherever_it_is(tmp_path: Path, count: int) -> None:
    teller = Teller()
    records = [
        teller.tell(StageStarted(stage="clean"), rank=None),
        teller.tell(process()),
        *training(teller, steps=320, every=205),
    ]
    write_log(tmp_path, records[: count + 1])
    check(tmp_path)


def test_steps_that_are_told_of_after_their_evaluation_began_are_no_training(tmp_path: Path) -> None:
    teller = Teller()
    steps = [teller.tell(started()), *(teller.step(each) for each in range(1, 10))]
    write_log(tmp_path, [*steps, teller.tell(EvaluationStarted(step=10)), teller.step(10)])
    check(tmp_path)
    assert state_of(read_series(tmp_path)).doing == "evaluating"


def restarted(teller: Teller, *, back_to: int, steps: int = 50) -> list[Record]:
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed")
    return [
        teller.tell(lost, rank=None),
        teller.tell(process(), after_s=5),
        teller.tell(started(back_to), after_s=5),
        *(teller.step(back_to + each) for each in range(1, steps + 1)),
    ]


def test_a_restart_that_goes_back_is_told_alike(tmp_path: Path) -> None:
    teller = Teller()
    records = [teller.tell(process()), *training(teller, steps=350, every=100)]
    write_log(tmp_path, [*records, *restarted(teller, back_to=200)])
    check(tmp_path)


def test_a_run_that_was_lost_is_restarting_in_both(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [*training(teller, steps=350, every=100), *restarted(teller, back_to=200)[:1]])
    check(tmp_path)
    assert state_of(read_series(tmp_path)).doing == "restarting"


def test_a_long_run_with_restarts_has_the_same_curve_but_for_what_was_done_again(tmp_path: Path) -> None:
    teller = Teller()
    records = list(training(teller, steps=580, every=250))
    write_log(tmp_path, [*records, *restarted(teller, back_to=500, steps=60)])
    check(tmp_path, but=(".curve", ".pace"))
    columns, folded = both(tmp_path)
    assert columns.curve.values(40) == pytest.approx(folded.curve.values(40), rel=0.01)
    assert columns.pace.values(40) == pytest.approx(folded.pace.values(40), rel=0.01)


def test_troubles_of_every_rank_are_told_alike_and_in_the_same_order(tmp_path: Path) -> None:
    teller = Teller()
    records = [teller.tell(started()), *(teller.step(each) for each in range(1, 6))]
    records += [teller.step(each, loss=math.nan, skipped=True) for each in (6, 7)]
    records += [teller.tell(CheckpointFailed(step=7, reason="disk full"), rank=1)]
    records += [teller.tell(StopAsked(signal="SIGTERM"), rank=rank) for rank in (0, 1)]
    records += [teller.step(8, loss=math.nan, skipped=True), teller.step(9)]
    records += [teller.tell(BatchSplit(step=9, target_tokens=9, pieces=2), rank=1)]
    write_log(tmp_path, records)
    check(tmp_path)


def test_batches_that_were_split_more_often_than_is_kept_are_so_many_at_least(tmp_path: Path) -> None:
    teller = Teller()
    split = [teller.tell(BatchSplit(step=each, target_tokens=9, pieces=2)) for each in range(1, 200)]
    write_log(tmp_path, [teller.tell(started()), *split])
    (trouble,) = state_of(read_series(tmp_path)).troubles
    assert str(trouble).endswith("(at least 100 times so far)")


def test_scores_of_other_tools_are_no_evaluation(tmp_path: Path) -> None:
    teller = Teller()
    score = ScoreImported(step=5, set="valid", name="BLEU", value=3.0, meaning="")
    loss = LossMeasured(step=9, set="valid", loss=2.0, target_tokens=0, pairs=0, duration_s=math.nan)
    write_log(tmp_path, [teller.tell(started()), teller.step(5), teller.tell(score), teller.tell(loss)])
    check(tmp_path)


def test_an_imported_run_is_told_alike(tmp_path: Path) -> None:
    log, run = tmp_path / "train.log", tmp_path / "run"
    log.write_text(whole(), encoding="utf-8")
    import_openseq2seq(log, run)
    check(run)


@pytest.mark.parametrize("name", ["runlog-v1", "runlog-v1-training"])
def test_logs_of_older_versions_are_told_alike(name: str) -> None:
    check(GOLDEN / name)


def test_hosts_are_told_alike_and_only_their_last_minutes_are_held(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started()), *(teller.step(each) for each in range(1, 900))])
    write_samples(tmp_path, [*sampling("alpha", seconds=200, throttled=2), *sampling("beta", seconds=30)])
    check(tmp_path)
    state = state_of(read_series(tmp_path))
    assert [len(host.moments) for host in state.hosts.values()] == [120, 30]


def test_a_host_whose_cards_tell_little_is_told_alike(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started())])
    (first, *rest) = sampling("alpha", seconds=3)
    bare = replace(
        sampled(1),
        gpu_power_w=(),
        gpu_temperature_c=(),
        gpu_throttled=(),
        gpu_memory_bytes=(-1,) * 4,
        memory_bytes=-1,
        cpu=math.nan,
    )
    write_samples(tmp_path, [first, *(replace(each, event=bare) for each in rest)])
    check(tmp_path)


def test_a_sampler_that_starts_anew_on_the_same_host_goes_on(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started()), teller.tell(checkpoint(1))])
    begun_ns = teller.time_ns + 100 * SECOND
    write_samples(
        tmp_path, [*sampling("alpha", seconds=20), *sampling("alpha", seconds=5, start_ns=begun_ns)]
    )
    check(tmp_path)
    state = state_of(read_series(tmp_path))
    assert len(state.hosts["alpha"].moments) == 25
    assert state.hosts["alpha"].described == described()
