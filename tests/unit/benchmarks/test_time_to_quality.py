"""What is trained is a recipe, and the run that is timed is cheap to watch."""

from benchmarks.time_to_quality import RECIPE

from tandem.config import Recipe


def test_the_recipe_is_the_shape_that_others_were_measured_with() -> None:
    text = {"source": "a.en", "target": "a.de"}
    recipe = Recipe.model_validate(RECIPE | {"data": {"train": [text], "valid": text}})
    model = recipe.model
    assert (model.width, model.heads, model.encoder_layers, model.decoder_layers) == (512, 8, 6, 6)
    assert (recipe.subword.kind, recipe.subword.vocabulary, recipe.subword.joint) == ("bpe", 16_000, True)
    assert (recipe.evaluate.beam, recipe.evaluate.tokenizer("de"), recipe.evaluate.lowercase) == (
        4,
        "13a",
        False,
    )
    assert recipe.evaluate.sentences == 0
