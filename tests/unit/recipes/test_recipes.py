"""Every shipped recipe loads, and those that stand for a published setting say what it was."""

from pathlib import Path

import pytest

from tandem.config import Recipe, load_recipe

FOLDER = Path(__file__).parents[3] / "recipes"
RECIPES = sorted(FOLDER.glob("*.yaml"))


def recipe_named(name: str) -> Recipe:
    return load_recipe(FOLDER / f"{name}.yaml").recipe


def test_the_recipes_are_where_they_should_be() -> None:
    assert {path.stem for path in RECIPES} == {
        "demo",
        "europarl",
        "multi30k",
        "multi30k-published",
        "own-text",
        "tatoeba",
        "wmt-ende-base",
        "wmt-ende-big",
    }


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_is_called_like_its_file_and_is_evaluated(path: Path) -> None:
    recipe = load_recipe(path).recipe
    assert recipe.name == path.stem
    assert recipe.is_evaluated


def test_the_demo_needs_no_files() -> None:
    data = recipe_named("demo").data
    corpora = [*data.train, data.valid, *data.test]
    assert all(corpus.builtin for corpus in corpora if corpus)


def test_other_recipes_read_their_text_from_corpora() -> None:
    for name in {path.stem for path in RECIPES} - {"demo"}:
        corpus = recipe_named(name).data.train[0]
        assert corpus.source is not None
        assert FOLDER.parent / "corpora" in corpus.source.parents


def test_wmt_base_has_the_settings_of_the_reference() -> None:
    recipe = recipe_named("wmt-ende-base")
    model, optim = recipe.model, recipe.optim
    shape = model.width, model.heads, model.encoder_layers, model.decoder_layers, model.feed_forward
    assert shape == (512, 8, 6, 6, 2048)
    assert (model.dropout, model.norm_place, model.tied) == (0.1, "pre", "all")
    assert (optim.schedule, optim.learning_rate, optim.warmup_steps) == ("transformer", 2.0, 8000)
    assert (optim.beta1, optim.beta2, optim.epsilon, optim.clip_norm) == (0.9, 0.997, 1e-9, 0)
    assert (recipe.train.max_steps, recipe.train.label_smoothing) == (300_000, 0.1)
    assert (recipe.subword.vocabulary, recipe.subword.joint) == (32_768, True)
    assert (recipe.clean.min_words, recipe.clean.max_words, recipe.clean.max_ratio) == (1, 80, 9)
    evaluate = recipe.evaluate
    assert (evaluate.every_steps, evaluate.beam, evaluate.length_penalty) == (4001, 4, 0.6)


def test_published_multi30k_has_the_settings_of_the_publication() -> None:
    recipe = recipe_named("multi30k-published")
    model, optim = recipe.model, recipe.optim
    shape = model.width, model.heads, model.encoder_layers, model.decoder_layers, model.feed_forward
    assert shape == (128, 4, 4, 4, 256)
    assert model.dropout == 0.3
    assert (optim.schedule, optim.learning_rate, optim.warmup_steps) == ("inverse_sqrt", 5e-3, 2000)
    assert (recipe.batch.target_tokens, recipe.train.max_steps) == (8192, 8000)
    assert (recipe.subword.kind, recipe.evaluate.tokenize, recipe.evaluate.beam) == ("segmented", "none", 5)
