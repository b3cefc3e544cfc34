"""A whole rank, in this process: from a recipe to checkpoints, and on from there."""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite, isnan
from pathlib import Path
from typing import TypeVar

import pytest

from tandem.checkpoint.layout import step_folder
from tandem.config import Recipe
from tandem.errors import TandemError
from tandem.parallel.pulse import PULSE, PulseWriter, read_pulse
from tandem.runlog.event import (
    CheckpointRejected,
    DeviceMeasured,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    HostDescribed,
    LossMeasured,
    RunFinished,
    SampleTranslated,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
    TranslationScored,
)
from tandem.runlog.reader import read_records
from tandem.train import announce
from tandem.train.asked import Asked
from tandem.train.assemble import Options, train_rank
from tandem.train.measured import MeasuredSet
from tandem.train.meter import Meter
from tandem.train.step import StepResult
from tandem.train.validate import Validator

OPTIONS = Options(device="cpu", batch_tokens=256)
RecipeWith = Callable[..., Recipe]


def facts(run: Path) -> list[Event]:
    return [record.event for record in read_records(run)]


Kind = TypeVar("Kind", bound=Event)


def of(run: Path, kind: type[Kind]) -> list[Kind]:
    return [fact for fact in facts(run) if isinstance(fact, kind)]


def tensors(run: Path, step: int) -> tuple[bytes, bytes]:
    folder = step_folder(run / "checkpoints", step)
    return (folder / "model.safetensors").read_bytes(), (folder / "optimizer.safetensors").read_bytes()


def test_a_run_trains_evaluates_saves_and_says_so(micro: Recipe, run: Path) -> None:
    train_rank(run, micro, OPTIONS)
    steps = of(run, StepFinished)
    assert [fact.step for fact in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1].loss < steps[0].loss
    assert steps[0].batches > 1
    assert [path.name for path in sorted((run / "checkpoints").iterdir())] == [
        "step-00000002",
        "step-00000004",
        "step-00000006",
    ]
    started, finished = of(run, TrainingStarted)[0], of(run, TrainingFinished)[0]
    assert (started.step, started.resumed_from, started.ranks) == (0, "", 1)
    assert (finished.step, finished.reason) == (6, "reached 6 steps")
    assert facts(run)[-1] == RunFinished(reason="reached 6 steps")


def test_a_run_says_how_much_arithmetic_it_is_and_how_much_its_device_can_do(
    micro: Recipe, run: Path
) -> None:
    train_rank(run, micro, OPTIONS)
    (started,), (measured,) = of(run, TrainingStarted), of(run, DeviceMeasured)
    # Each weight but those of the embedding is used twice forward and four times backward, by one side or the other.
    assert 3 * started.parameters < started.flops_per_target_token < 12 * started.parameters
    assert started.gradient_bytes >= 4 * started.parameters
    assert (measured.device, measured.precision) == ("cpu", "fp32")
    assert measured.flops_per_s > 1e8


def test_a_large_text_is_counted_by_a_part_of_it(
    micro: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_rank(tmp_path / "all", micro, OPTIONS)
    monkeypatch.setattr(announce, "MOST_COUNTED", 1)
    train_rank(tmp_path / "part", micro, OPTIONS)
    whole, part = (of(tmp_path / name, TrainingStarted)[0] for name in ("all", "part"))
    assert part.flops_per_target_token == pytest.approx(whole.flops_per_target_token, rel=0.1)


def test_a_run_has_its_host_sampled_if_it_wants(recipe_with: RecipeWith, run: Path) -> None:
    train_rank(run, recipe_with("train.max_steps=1"), OPTIONS)
    assert not of(run, HostDescribed)
    train_rank(run, recipe_with("telemetry.sample_seconds=0.1"), OPTIONS)
    assert len(of(run, HostDescribed)) == 1


def test_the_last_step_is_judged_and_its_translations_are_kept(micro: Recipe, run: Path) -> None:
    train_rank(run, micro, OPTIONS)
    losses = {fact.set: fact for fact in of(run, LossMeasured)}
    assert losses.keys() == {"valid", "probe"}
    assert losses["valid"].pairs == 30
    assert losses["probe"].pairs >= 40
    scored = of(run, TranslationScored)[0]
    assert scored.sentences == len((run / scored.hypotheses).read_text().splitlines()) == 30
    assert "tok:13a" in scored.bleu_signature
    assert isfinite(scored.bleu_low)
    assert isfinite(scored.bleu_high)
    assert [fact.number for fact in of(run, SampleTranslated)] == [0, 15]
    assert of(run, EvaluationFinished)[0].is_best_loss


def test_bleu_of_very_few_sentences_has_no_interval(recipe_with: RecipeWith, run: Path) -> None:
    train_rank(run, recipe_with("evaluate.sentences=29", "train.max_steps=1"), OPTIONS)
    scored = of(run, TranslationScored)[0]
    assert (scored.sentences, isfinite(scored.bleu)) == (29, True)
    assert isnan(scored.bleu_low)
    assert isnan(scored.bleu_high)


def test_a_resumed_run_ends_in_the_same_bits(recipe_with: RecipeWith, tmp_path: Path) -> None:
    for name, ema in (("plain", 0), ("averaged", 0.9)):
        whole, parts = tmp_path / name / "whole", tmp_path / name / "parts"
        train_rank(whole, recipe_with(f"optim.ema_decay={ema}"), OPTIONS)
        for steps in (1, 3, 6):
            train_rank(parts, recipe_with(f"optim.ema_decay={ema}", f"train.max_steps={steps}"), OPTIONS)
        assert tensors(parts, 6) == tensors(whole, 6)
        resumed = [fact.resumed_from for fact in of(parts, TrainingStarted)]
        assert resumed == ["", "step-00000001", "step-00000003"]


def test_evaluating_changes_no_bit_of_what_is_learnt(recipe_with: RecipeWith, tmp_path: Path) -> None:
    train_rank(tmp_path / "often", recipe_with("evaluate.every_steps=1", "optim.ema_decay=0.5"), OPTIONS)
    train_rank(tmp_path / "once", recipe_with("optim.ema_decay=0.5"), OPTIONS)
    assert tensors(tmp_path / "often", 6) == tensors(tmp_path / "once", 6)


def test_micro_batches_are_those_of_the_checkpoint_on_the_same_number_of_ranks(
    recipe_with: RecipeWith, run: Path
) -> None:
    train_rank(run, recipe_with("train.max_steps=2"), OPTIONS)
    train_rank(run, recipe_with(), Options(device="cpu"))
    assert [fact.target_capacity for fact in of(run, TrainingStarted)] == [256, 256]


def test_a_corrupt_newest_checkpoint_is_said_and_the_one_before_is_used(
    micro: Recipe, tmp_path: Path
) -> None:
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    train_rank(whole, micro, OPTIONS)
    shutil.copytree(whole, hurt)
    file = step_folder(hurt / "checkpoints", 6) / "optimizer.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    train_rank(hurt, micro, OPTIONS)
    assert "optimizer.safetensors" in of(hurt, CheckpointRejected)[0].reason
    assert of(hurt, TrainingStarted)[-1].resumed_from == "step-00000004"
    assert tensors(hurt, 6) == tensors(whole, 6)


def test_a_finished_run_has_nothing_left_to_do(micro: Recipe, run: Path) -> None:
    train_rank(run, micro, OPTIONS)
    before = tensors(run, 6)
    train_rank(run, micro, OPTIONS)
    assert tensors(run, 6) == before
    assert len(of(run, StepFinished)) == 6
    assert len(of(run, EvaluationFinished)) == 1


def test_a_recipe_that_does_not_match_the_checkpoint_is_refused(recipe_with: RecipeWith, run: Path) -> None:
    train_rank(run, recipe_with("train.max_steps=2"), OPTIONS)
    with pytest.raises(TandemError, match=r"another recipe \(different: model\.width\)"):
        train_rank(run, recipe_with("model.width=48"), OPTIONS)
    assert of(run, RunFinished)[-1].reason.startswith("failed: ")


def test_other_data_than_the_checkpoint_s_is_refused(recipe_with: RecipeWith, run: Path) -> None:
    train_rank(run, recipe_with("train.max_steps=2"), OPTIONS)
    with pytest.raises(TandemError, match="was trained on other data"):
        train_rank(run, recipe_with("data.train.0.weight=2"), OPTIONS)


def test_a_truncated_shard_is_one_sentence(recipe_with: RecipeWith, tmp_path: Path) -> None:
    recipe = recipe_with()
    hurt = tmp_path / "data"
    shutil.copytree(recipe.prepared_folder, hurt)
    part = max((hurt / "train").glob("*"), key=lambda path: path.stat().st_size)
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(TandemError, match=part.name):
        train_rank(tmp_path / "run", recipe_with(f"data.folder={hurt}"), OPTIONS)


def test_no_place_for_the_log_stops_nothing(micro: Recipe, run: Path) -> None:
    run.mkdir()
    (run / "log").write_text("a file where the folder should be")
    train_rank(run, micro, OPTIONS)
    assert step_folder(run / "checkpoints", 6).is_dir()


def test_patience_ends_a_run_that_does_not_get_better(recipe_with: RecipeWith, run: Path) -> None:
    hopeless = recipe_with("optim.learning_rate=1e-12", "train.patience=2", "evaluate.every_steps=1")
    train_rank(run, hopeless, OPTIONS)
    assert of(run, TrainingFinished)[0].reason == "no better loss in 2 evaluations"


def test_a_run_without_a_valid_set_is_not_judged(recipe_with: RecipeWith, run: Path) -> None:
    train_rank(run, recipe_with("data.valid=null"), OPTIONS)
    assert not of(run, LossMeasured)
    assert step_folder(run / "checkpoints", 6).is_dir()


@pytest.mark.parametrize("is_link", [False, True])
def test_no_place_for_translations_stops_nothing(
    micro: Recipe, run: Path, tmp_path: Path, *, is_link: bool
) -> None:
    run.mkdir()
    (tmp_path / "elsewhere").mkdir()
    if is_link:
        (run / "hypotheses").symlink_to(tmp_path / "elsewhere")
    else:
        (run / "hypotheses").write_text("a file where the folder should be")
    train_rank(run, micro, OPTIONS)
    assert of(run, TranslationScored)[0].hypotheses == ""
    assert not any((tmp_path / "elsewhere").iterdir())
    assert of(run, EvaluationFinished)


def test_a_stop_at_an_evaluation_s_step_ends_at_once_and_the_rerun_makes_up_for_it(
    recipe_with: RecipeWith, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_with("evaluate.every_steps=3")
    add = Meter.add

    def interrupted(self: Meter, result: StepResult, *, epoch: int) -> Asked:
        if result.step == 2:
            signal.raise_signal(signal.SIGTERM)
        return add(self, result, epoch=epoch)

    with monkeypatch.context() as patch:
        patch.setattr(Meter, "add", interrupted)
        train_rank(run, recipe, OPTIONS)
    assert of(run, TrainingFinished)[0].reason == "asked to stop"
    assert not of(run, EvaluationStarted)
    assert step_folder(run / "checkpoints", 3).is_dir()
    train_rank(run, recipe, OPTIONS)
    assert [fact.step for fact in of(run, EvaluationFinished)] == [3, 6]


@contextmanager
def signals_inside_evaluations() -> Iterator[None]:
    """Inside the block every evaluation meets a signal."""
    measure = Validator._measure

    def interrupted(self: Validator, measured: MeasuredSet, step: int) -> float:
        signal.raise_signal(signal.SIGTERM)
        return measure(self, measured, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Validator, "_measure", interrupted)
        yield


@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_inside_an_evaluation_ends_the_run_at_that_step_and_is_made_up_for(
    recipe_with: RecipeWith, run: Path, times: int
) -> None:
    recipe = recipe_with("evaluate.every_steps=3")
    with signals_inside_evaluations():
        for _ in range(times):
            train_rank(run, recipe, OPTIONS)
    assert [fact.step for fact in of(run, TrainingFinished)] == [3] * times
    train_rank(run, recipe, OPTIONS)
    assert [fact.step for fact in of(run, EvaluationFinished)] == [3, 6]
    assert [fact.step for fact in of(run, StepFinished)] == [1, 2, 3, 4, 5, 6]


def test_the_pulse_tells_the_step_and_goes_on_through_an_evaluation(
    micro: Recipe, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int | None] = []
    beat = PulseWriter.beat

    def counted(self: PulseWriter, step: int | None = None) -> None:
        beats.append(step)
        beat(self, step)

    monkeypatch.setattr(PulseWriter, "beat", counted)
    monkeypatch.setenv(PULSE, str(tmp_path / "pulse"))
    train_rank(run, micro, OPTIONS)
    state = read_pulse(tmp_path / "pulse")
    assert state is not None
    assert state.step == 6
    assert [step for step in beats if step is not None] == [1, 2, 3, 4, 5, 6]
    # At the end two sets are measured, in a batch each or more, and the valid text is translated.
    assert beats[-3:] == [None] * 3
