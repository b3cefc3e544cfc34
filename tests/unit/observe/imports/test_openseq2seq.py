import math
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.observe.imports.printing import HEAD, PLAIN_HEAD, evaluation, of, step, whole

from tandem.errors import TandemError
from tandem.observe.imports import Observed, import_openseq2seq
from tandem.observe.sinks.event_file import encode_scalars, frame
from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    LossMeasured,
    RunFinished,
    RunImported,
    ScoreImported,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
)
from tandem.runlog.reader import read_records

Import = Callable[[str], Path]


@pytest.fixture
def bring(tmp_path: Path) -> Import:
    """Imports a text, each time into a folder of its own."""
    count = iter(range(1_000_000))

    def import_text(text: str) -> Path:
        log, run = tmp_path / "train.log", tmp_path / f"run-{next(count)}"
        log.write_text(text, encoding="utf-8")
        import_openseq2seq(log, run)
        return run

    return import_text


def test_steps_are_told_as_printed_and_nothing_else_is_known_of_them(bring: Import) -> None:
    first, second, *_ = of(bring(whole()), StepFinished)
    assert (first.step, first.loss, second.step, second.loss, second.duration_s) == (
        0,
        9.4701,
        100,
        7.125,
        1.625,
    )
    assert all(math.isnan(each) for each in (second.nll, second.learning_rate, second.gradient_norm))
    assert (second.pairs, second.target_tokens, second.phases) == (64, 0, {})


def test_a_mean_that_holds_a_start_or_an_evaluation_is_no_time_of_a_step(bring: Import) -> None:
    known = [not math.isnan(event.duration_s) for event in of(bring(whole()), StepFinished)]
    assert known == [False, True, True, False, True, False]


def test_evaluations_have_the_step_that_the_tools_rule_gives(bring: Import) -> None:
    run = bring(whole())
    assert [(event.step, event.loss) for event in of(run, LossMeasured)] == [
        (0, 9.4593),
        (201, 5.5),
        (402, 5.25),
    ]
    assert [event.value for event in of(run, ScoreImported)] == [0.9565, 0.125, 0.1875]
    assert "no BLEU of translations" in of(run, ScoreImported)[0].meaning


def test_what_an_evaluation_took_is_what_the_steps_beside_it_did_not(bring: Import) -> None:
    first, second, _ = [event.duration_s for event in of(bring(whole()), EvaluationFinished)]
    assert math.isnan(first)
    assert second == pytest.approx(20.0)


def test_times_add_up_from_the_first_one_in_the_log(bring: Import) -> None:
    run = bring(whole())
    times = [record.time_ns / 1e9 for record in read_records(run)]
    assert times[0] == pytest.approx(1593185802.835076)
    # Start-up, then five times a hundred steps at the means that were printed.
    assert times[-1] - times[0] == pytest.approx(50 + 162.5 + 150 + 170 + 150 + 170)
    assert times == sorted(times)
    (imported,) = of(run, RunImported)
    assert (imported.times, imported.step_kind, imported.files) == ("steps", "mean", ("train.log",))


def test_a_start_has_the_plan_of_the_learning_rate_and_the_bytes_of_the_gradients(bring: Import) -> None:
    (start,) = of(bring(whole()), TrainingStarted)
    assert start.schedule == "transformer: 2 · 512^-0.5 · min(step^-0.5, step · 8000^-1.5)"
    assert (start.parameters, start.ranks, start.gradient_bytes) == (6_000_000, 2, 24_000_000)
    assert (start.max_steps, start.precision, start.resumed_from) == (1000, "mixed", "")


def test_a_log_that_just_ends_does_not_say_that_training_did(bring: Import) -> None:
    run = bring(whole())
    assert not of(run, TrainingFinished)
    assert not of(run, RunFinished)
    assert not of(run, CheckpointWritten)


def test_a_log_that_tells_of_its_end_has_one(bring: Import) -> None:
    text = whole() + step(600, 5.0, 1.5) + step(900, 5.0, 1.5) + "*** Finished training\n"
    (finished,) = of(bring(text), TrainingFinished)
    assert (finished.step, finished.reason) == (900, "max_steps")
    (early,) = of(bring(whole() + "*** Finished training\n"), TrainingFinished)
    assert early.reason == "the tool said that it finished training"


def test_a_restart_goes_on_where_its_checkpoint_was_and_its_clock_tells_how_long_it_lay_still(
    bring: Import,
) -> None:
    text = (
        whole()
        + HEAD.replace(
            "Starting training from scratch",
            "Restored checkpoint from /there/model.ckpt-400. Resuming training",
        ).replace("15:36:42", "18:36:42")
        + evaluation(5.3, 0.2)
        + step(400, 5.5, 0.5)
        + step(500, 5.0, 1.5)
        + step(600, 4.875, 1.5)
        + evaluation(4.75, 0.25)
        + step(700, 4.625, 1.7)
    )
    run = bring(text)
    assert [(start.step, start.resumed_from) for start in of(run, TrainingStarted)] == [
        (0, ""),
        (400, "/there/model.ckpt-400"),
    ]
    # The rule counts from the first step after the start.
    assert [event.step for event in of(run, LossMeasured)] == [0, 201, 402, 400, 601]
    begun = [record.time_ns for record in read_records(run) if isinstance(record.event, TrainingStarted)]
    assert begun[1] - begun[0] == pytest.approx(3 * 3600e9)


def test_a_log_without_its_head_has_steps_and_says_what_is_missing(tmp_path: Path) -> None:
    text = "".join(step(number, 5.0 - number / 1000, 1.5) for number in range(1000, 1500, 100))
    (tmp_path / "tail.log").write_text("ep 900: loss\n" + text)
    imported = import_openseq2seq(tmp_path / "tail.log", tmp_path / "run")
    assert (imported.steps, imported.first_step, imported.last_step) == (5, 1000, 1400)
    assert {"the number of GPUs", "the number of hosts", "the time of day"} <= set(imported.untold)
    (start,) = of(tmp_path / "run", TrainingStarted)
    assert (start.parameters, start.ranks, start.schedule, start.gradient_bytes) == (0, 0, "", 0)
    assert [event.duration_s for event in of(tmp_path / "run", StepFinished)][1:] == [1.5] * 4


def test_one_gpu_without_horovod_exchanges_nothing(bring: Import) -> None:
    run = bring(
        PLAIN_HEAD + "*** Total trainable parameters: 6000000\n" + step(0, 9.0, 0.1) + step(100, 8.0, 1.5)
    )
    (start,) = of(run, TrainingStarted)
    assert (start.ranks, start.gradient_bytes) == (1, 0)
    assert "gradient_bytes_per_step_per_link" not in of(run, RunImported)[0].facts


def test_without_an_evaluation_there_is_none(bring: Import) -> None:
    run = bring(HEAD + step(0, 9.0, 0.5) + step(100, 8.0, 1.5))
    assert not of(run, LossMeasured)
    assert not of(run, EvaluationFinished)


def noisy(text: str) -> Iterator[str]:
    """The same log as other terminals keep it."""
    yield text.replace("\n", "\r\n")
    yield "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.splitlines())
    yield "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines())
    yield "nohup: ignoring input\n" + text.replace("*** Global", "Processed 3 batches\r*** Global")
    yield text.replace("time per", "[alpha:00292] a word of mpirun\n[1,1]<stderr>:W another rank\ntime per")
    yield text + "\x1b[0m[exited]\n$ \n"
    yield text + text


@pytest.mark.parametrize("variant", range(len(list(noisy("")))))
def test_noise_changes_nothing(bring: Import, variant: int) -> None:
    expected, run = bring(whole()), bring(list(noisy(whole()))[variant])
    # Text, since nan is not nan.
    assert [str(record) for record in read_records(run)][1:] == [
        str(record).replace("run-0", "run-1") for record in read_records(expected)
    ][1:]
    assert of(run, RunImported)[0].facts == of(expected, RunImported)[0].facts


def test_a_time_that_is_given_is_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(whole())
    start = datetime(2021, 1, 1, tzinfo=UTC)
    import_openseq2seq(
        tmp_path / "log", tmp_path / "run", start=start, observed=Observed(gpu_utilisation=1.0)
    )
    first = next(read_records(tmp_path / "run"))
    assert first.time_ns == start.timestamp() * 1e9
    assert isinstance(first.event, RunImported)
    assert first.event.facts["observed_gpu_utilisation"] == 1.0


def test_curves_beside_the_log_bring_rates_norms_steps_and_times(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(whole())
    board = tmp_path / "board"
    board.mkdir()
    data = b"".join(
        frame(
            encode_scalars(
                1e9 + 2 * number,
                step=number,
                scalars={"learning_rate": 0.001 * number, "global_gradient_norm": 0.5, "train_loss": 5.0},
            )
        )
        for number in range(0, 501, 100)
    )
    data += frame(encode_scalars(1e9 + 410, step=203, scalars={"eval_loss": 5.50001}))
    (board / "events.out.tfevents.1.alpha").write_bytes(data)
    import_openseq2seq(tmp_path / "log", tmp_path / "run", tensorboard=board)
    steps = of(tmp_path / "run", StepFinished)
    assert [each.learning_rate for each in steps] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert {each.gradient_norm for each in steps} == {0.5}
    assert [event.step for event in of(tmp_path / "run", LossMeasured)] == [0, 203, 402]
    assert of(tmp_path / "run", RunImported)[0].times == "wall"
    last = list(read_records(tmp_path / "run"))[-1]
    assert last.time_ns == pytest.approx((1e9 + 1000) * 1e9)


@pytest.mark.parametrize("text", ["", "hello\n", HEAD, "*** Finished training\n", "\x00" * 1000 + "\n"])
def test_a_file_that_tells_of_no_step_is_refused_and_nothing_is_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(TandemError, match="log tells of no step and no evaluation"):
        import_openseq2seq(tmp_path / "log", tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize(
    "word", ["a", "a.", "name: x ", "NCCL INFO ", "'", "<", "[1,", "\x1b]", "Restored checkpoint from x"]
)
def test_long_lines_of_anything_are_read_in_one_go(bring: Import, word: str) -> None:
    run = bring("*** Training config:\n{" + word * (100_000 // len(word)) + "\n" + whole())
    assert len(of(run, StepFinished)) == 6


@pytest.mark.parametrize("number", ["-7", "0", "999999999999999999", "1e300", "nan", "'a'"])
def test_a_configuration_of_nonsense_is_read_or_refused(bring: Import, number: str) -> None:
    text = whole()
    for name in ("eval_steps", "print_loss_steps", "max_steps", "batch_size_per_gpu", "num_gpus"):
        text = re.sub(rf"'{name}': \d+", f"'{name}': {number}", text)
    try:
        run = bring(text)
    except TandemError as error:
        assert "make no sense" in str(error)  # noqa: PT017 - one of two ends
    else:
        times = [record.time_ns for record in read_records(run)]
        assert times == sorted(times)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no file .*nowhere"):
        import_openseq2seq(tmp_path / "nowhere", tmp_path / "run")


def told_steps(tmp_path: Path, text: str) -> list[tuple[int, float]] | None:
    """Import what may be part of a log, if it can be: each number is in the text, or a step by the tool's rule."""
    log, run = tmp_path / "cut.log", tmp_path / "cut"
    log.write_text(text, encoding="utf-8")
    try:
        import_openseq2seq(log, run)
    except TandemError:
        return None
    numbers = {float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", text)}
    for event in of(run, StepFinished):
        told = (event.step, event.loss, event.duration_s)
        assert all(value in numbers for value in told if not math.isnan(value))
    for measured in of(run, LossMeasured):
        assert measured.loss in numbers
        assert measured.step in numbers or measured.step % 201 == 0
    assert all(event.value in numbers for event in of(run, ScoreImported))
    assert all(event.parameters in {0, 6_000_000} for event in of(run, TrainingStarted))
    steps = [(event.step, event.loss) for event in of(run, StepFinished)]
    shutil.rmtree(run)
    return steps


def test_a_log_that_is_cut_anywhere_imports_or_is_refused_and_makes_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    text = whole()
    known = told_steps(tmp_path, text) or []
    places = [*range(0, len(text) - 200, 71), *range(len(text) - 200, len(text))]
    found = [told_steps(tmp_path, text[:place]) for place in places]
    counts = [len(steps) for steps in found if steps is not None]
    assert all(steps is None or steps == known[: len(steps)] for steps in found)
    assert counts == sorted(counts)
    assert set(counts) == set(range(7))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_whose_lines_are_shuffled_lost_or_spoilt_makes_nothing_up(
    tmp_path: Path, data: st.DataObject
) -> None:
    lines = whole().splitlines(keepends=True)
    kept = data.draw(st.lists(st.sampled_from(lines), max_size=60))
    noise = data.draw(st.text(max_size=40))
    place = data.draw(st.integers(0, len(kept)))
    told_steps(tmp_path, "".join([*kept[:place], noise, *kept[place:]]))
