"""Fine-tuning begins where the other model stood, and refuses what does not fit."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from sentencepiece import sentencepiece_model_pb2

from tandem.artefact import JsonValue
from tandem.checkpoint.bundle import find_bundle, open_bundle, read_weights
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import Scores
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.config import Recipe
from tandem.errors import TandemError
from tandem.runlog.event import LossMeasured, StepFinished
from tandem.runlog.reader import read_records
from tandem.train.assemble import Options, train_rank

OPTIONS = Options(device="cpu", batch_tokens=256)
RecipeWith = Callable[..., Recipe]
EVALUATED = "evaluate.every_steps=2"


def losses(run: Path) -> list[float]:
    return [
        record.event.loss
        for record in read_records(run)
        if isinstance(record.event, LossMeasured) and record.event.set == "valid"
    ]


@pytest.fixture(scope="session")
def learned(recipe_with: RecipeWith, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned something."""
    run = tmp_path_factory.mktemp("learned") / "run"
    train_rank(
        run, recipe_with("train.max_steps=12", "optim.learning_rate=0.01", "evaluate.sentences=0"), OPTIONS
    )
    return run


def fine_tuned(recipe_with: RecipeWith, learned: Path, *overrides: str) -> Recipe:
    return recipe_with(f"train.start_from={learned}", "evaluate.sentences=0", *overrides)


def test_fine_tuning_goes_down_from_the_loss_of_the_model_and_not_from_that_of_chance(
    recipe_with: RecipeWith, learned: Path, tmp_path: Path
) -> None:
    common = (EVALUATED, "train.max_steps=4", "evaluate.sentences=0", "optim.learning_rate=0.003")
    train_rank(tmp_path / "scratch", recipe_with(*common), OPTIONS)
    train_rank(tmp_path / "tuned", fine_tuned(recipe_with, learned, *common), OPTIONS)
    scratch, tuned = losses(tmp_path / "scratch"), losses(tmp_path / "tuned")
    assert tuned[0] < scratch[-1]
    assert tuned[-1] < tuned[0]


@pytest.mark.parametrize("decay", ["0.0", "0.9"])
def test_the_first_step_starts_at_the_weights_given(
    decay: str, recipe_with: RecipeWith, learned: Path, tmp_path: Path
) -> None:
    still = ("train.max_steps=1", "optim.learning_rate=1.0e-12", f"optim.ema_decay={decay}")
    train_rank(tmp_path / "tuned", fine_tuned(recipe_with, learned, *still), OPTIONS)
    given, after = read_weights(find_bundle(learned)), read_weights(find_bundle(tmp_path / "tuned"))
    assert given.keys() == after.keys()
    assert all(torch.allclose(given[name], after[name], atol=1e-6) for name in given)


def test_a_resumed_run_goes_on_from_its_own_checkpoint(
    recipe_with: RecipeWith, learned: Path, tmp_path: Path
) -> None:
    run = tmp_path / "tuned"
    train_rank(run, fine_tuned(recipe_with, learned, "train.max_steps=2"), OPTIONS)
    before = read_weights(find_bundle(run))
    still = fine_tuned(recipe_with, learned, "train.max_steps=3")
    train_rank(run, still, OPTIONS)
    steps = [record.event.step for record in read_records(run) if isinstance(record.event, StepFinished)]
    assert steps == [1, 2, 3]
    given = open_bundle(find_bundle(learned)).weights
    moved, jumped = (
        (
            read_weights(run / "checkpoints" / "step-00000003")["target_embedding"] - each["target_embedding"]
        ).norm()
        for each in (before, given)
    )
    assert moved < jumped


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["model.feed_forward=32"], r"decoder\.0\.feed_forward\.inner\.bias is \[64\]"),
        (["model.decoder_layers=2"], r"decoder\.1\..* is missing"),
        (["model.norm=rms"], r"norm\.bias is \[32\] .* missing"),
    ],
)
def test_a_model_of_another_shape_is_refused_by_its_tensor(
    overrides: list[str], sentence: str, recipe_with: RecipeWith, learned: Path, tmp_path: Path
) -> None:
    with pytest.raises(TandemError, match=sentence):
        train_rank(tmp_path / "tuned", fine_tuned(recipe_with, learned, *overrides), OPTIONS)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["subword.model"], r"other pieces .* subword\.model=.*other/subword\.model"),
        (["source.model", "target.model"], r"other pieces .*: it does not have one subword model for both"),
    ],
)
def test_a_model_with_other_pieces_is_refused_with_a_cure_that_there_is(
    names: list[str], sentence: str, recipe_with: RecipeWith, learned: Path, tmp_path: Path
) -> None:
    folder = find_bundle(learned)
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.ParseFromString((folder / "subword.model").read_bytes())
    model.pieces[-1].score -= 1.0
    facts: dict[str, JsonValue] = {
        "step": 1,
        "scores": Scores().to_json(),
        "subword": {"models": [*names], "by_word": False},
    }
    texts = {RECIPE: (folder / RECIPE).read_bytes(), **dict.fromkeys(names, model.SerializeToString())}
    write_checkpoint(
        tmp_path / "other", Draft(tensors={MODEL: read_weights(folder)}, texts=texts, facts=facts)
    )
    with pytest.raises(TandemError, match=sentence):
        train_rank(tmp_path / "tuned", fine_tuned(recipe_with, tmp_path / "other"), OPTIONS)


def test_a_path_without_a_model_is_refused(recipe_with: RecipeWith, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="neither a checkpoint"):
        train_rank(tmp_path / "tuned", recipe_with(f"train.start_from={tmp_path / 'nothing'}"), OPTIONS)
