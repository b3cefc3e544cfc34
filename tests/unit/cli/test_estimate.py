"""`tandem estimate`: what it says of a recipe, and of GPUs that are too small for it."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tandem.cli.estimate import estimate
from tandem.config import load_recipe
from tandem.errors import TandemError
from tandem.estimate.memory import RankMemory


@pytest.fixture
def recipe(repository: Path) -> Path:
    return repository / "recipes" / "wmt-ende-big.yaml"


def output(*arguments: str | Path) -> str:
    app = typer.Typer()
    app.command()(estimate)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_it_says_what_training_takes(recipe: Path) -> None:
    table = rows(output(recipe))
    assert ["parameters", "214,245,376,", "with", "37,000", "pieces"] in table
    assert ["checkpoint", "2,570.9", "MB"] in table
    assert next(row for row in table if row[0] == "training")[2:6] == ["MFLOP", "a", "target", "token,"]


def test_the_table_has_the_largest_batch_of_each_gpu_and_how_many_an_update_needs(recipe: Path) -> None:
    memory = RankMemory.of(load_recipe(recipe, ["batch.target_tokens=100000"]).recipe)
    table = {
        row[0]: row[2:] for row in rows(output(recipe, "batch.target_tokens=100000")) if row[1:2] == ["GB"]
    }
    assert list(table) == ["16", "24", "40", "80", "141"]
    for gigabytes in ("16", "24"):
        tokens = memory.largest_on(int(gigabytes) * 1e9)
        assert table[gigabytes] == [f"{tokens:,}", str(-(-100_000 // tokens))]
    assert table["141"] == ["65,536,", "the", "most", "2"]


@pytest.mark.parametrize("preset", ["base", "big"])
def test_the_page_on_training_shows_what_the_command_says(repository: Path, preset: str) -> None:
    page = (repository / "docs" / "training.md").read_text(encoding="utf-8").partition("## What fits")[2]
    row = next(line for line in page.splitlines() if line.startswith(f"| `{preset}` |"))
    shown = [cell.strip() for cell in row.strip("|").split("|")][1:]
    values = [f"model.preset={preset}", "subword.vocabulary=32768"]
    text = output(repository / "recipes" / "own-text.yaml", *values)
    table = {row[0]: row[2] for row in rows(text) if row[1:2] == ["GB"]}
    assert shown[3:] == [tokens.strip(",") for tokens in table.values()]
    state, source, target = shown[:3]
    assert f"{state}: weights" in text
    assert f"{source} a source token and {target} a target token" in text


def test_a_model_that_is_too_large_is_named_with_what_would_help(recipe: Path) -> None:
    large = ["model.width=3072", "model.feed_forward=12288"]
    text = output(recipe, *large)
    assert ["16", "GB", "does", "not", "fit", "–"] in rows(text)
    assert "24 GB: weights, gradients and moments take 30.59 GB: take a smaller model.\n" in text
    assert "80 GB: " not in text


def test_a_running_average_is_named_only_where_doing_without_it_is_enough(recipe: Path) -> None:
    text = output(recipe, "model.width=3072", "model.feed_forward=12288", "optim.ema_decay=0.999")
    of_gpu = {line.split(" GB: ")[0]: line for line in text.splitlines() if " GB: weights, g" in line}
    assert "optim.ema_decay" not in of_gpu["24"]
    assert of_gpu["40"].endswith("take a smaller model, or do without optim.ema_decay.")


def test_long_sentences_that_do_not_fit_are_named(recipe: Path) -> None:
    text = output(
        recipe, "model.width=2048", "subword.max_pieces=20000", "batch.target_tokens=90000", "model.heads=32"
    )
    line = next(line for line in text.splitlines() if line.startswith("16 GB: "))
    assert "sentences of 20000 pieces need" in line
    assert line.endswith("take a smaller model, or make subword.max_pieces smaller.")


def test_a_pipe_gets_plain_whole_lines(recipe: Path) -> None:
    text = output(recipe)
    assert "\x1b" not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_a_mistake_is_handed_on_as_one_sentence(recipe: Path) -> None:
    with pytest.raises(TandemError, match="unknown key"):
        output(recipe, "modle.width=4")
