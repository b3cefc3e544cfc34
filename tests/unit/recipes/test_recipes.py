"""Every shipped recipe loads."""

from pathlib import Path

import pytest

from tandem.config import load_recipe

FOLDER = Path(__file__).parents[3] / "recipes"
RECIPES = sorted(FOLDER.glob("*.yaml"))


def test_the_recipes_are_where_they_should_be() -> None:
    assert {path.stem for path in RECIPES} >= {"demo", "multi30k", "own-text", "wmt14-en-de"}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_is_called_like_its_file(path: Path) -> None:
    recipe = load_recipe(path).recipe
    assert recipe.name == path.stem
    assert recipe.data.valid is not None


def test_the_demo_needs_no_files() -> None:
    data = load_recipe(FOLDER / "demo.yaml").recipe.data
    corpora = [*data.train, data.valid, *data.test]
    pairs = [corpus.builtin.pairs for corpus in corpora if corpus and corpus.builtin]
    assert pairs == [20_000, 500, 500]
