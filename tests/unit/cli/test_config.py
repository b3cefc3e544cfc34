"""`tandem config`: what it prints to a pipe, and what it writes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.cli.config import app
from tandem.config import load_recipe, recipe_schema
from tandem.errors import TandemError

RECIPE = "name: tiny\ndata:\n  train:\n    - builtin: {pairs: 10}\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE)
    return path


def output(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_show_prints_each_value_with_where_it_came_from(recipe: Path) -> None:
    rows = [line.split() for line in output("show", recipe, "clean.max_words=100").splitlines()]
    assert ["name", "tiny", f"{recipe}:1"] in rows
    assert ["clean.max_words", "100", "command", "line"] in rows
    assert ["batch.target_tokens", "25000", "default"] in rows


def test_show_aligns_its_columns_and_neither_wraps_nor_colours_in_a_pipe(recipe: Path) -> None:
    lines = output("show", recipe, f"data.folder=/{'long/' * 60}").splitlines()
    assert len(lines) == len(list(load_recipe(recipe, ["data.folder=/x"]).rows()))
    assert len({line.index(line.split(maxsplit=1)[1]) for line in lines}) == 1
    assert all(line.isprintable() for line in lines)


def test_show_prints_no_control_characters_that_a_path_may_hold(recipe: Path) -> None:
    assert "\x1b" not in output("show", recipe, 'data.folder="/\\e[31m"')


def test_show_json_holds_the_recipe_and_its_origins(recipe: Path) -> None:
    shown = json.loads(output("show", recipe, "seed=7", "--json"))
    assert shown["recipe"]["seed"] == 7
    assert shown["origins"]["seed"] == "command line"
    assert shown["recipe"]["data"]["train"][0]["builtin"]["pairs"] == 10


def test_show_hands_a_mistake_on_as_one_sentence(recipe: Path) -> None:
    with pytest.raises(TandemError, match="command line: unknown key 'sed'; did you mean 'seed'"):
        output("show", recipe, "sed=7")


def test_keys_explains_every_key_or_those_with_a_word() -> None:
    assert "subword.vocabulary  32768\n    Number of pieces" in output("keys")
    found = output("keys", "max_words").splitlines()
    assert found[0] == "clean.max_words  80"
    assert len(found) == 2


def test_schema_goes_to_the_terminal_or_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.schema.json"
    assert json.loads(output("schema")) == recipe_schema()
    assert output("schema", "--out", path) == ""
    assert json.loads(path.read_text()) == recipe_schema()
