"""The schema and the keys describe every key of a recipe."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tandem.config import Recipe, recipe_keys, recipe_schema


def objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    yield from schema["$defs"].values()


def test_the_schema_names_its_draft_and_title() -> None:
    schema = recipe_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "Tandem recipe"
    assert schema["required"] == ["name", "data"]


def test_every_object_is_described_and_takes_no_other_keys() -> None:
    for found in objects(recipe_schema()):
        assert found["additionalProperties"] is False
        assert found["description"]


def test_every_key_has_a_sentence() -> None:
    schema = recipe_schema()
    for found in objects(schema):
        for key, field in found["properties"].items():
            section = schema["$defs"].get(field.get("$ref", "").removeprefix("#/$defs/"), {})
            assert {**section, **field}["description"].endswith("."), key


def test_an_editor_is_told_that_a_corpus_is_named_in_one_way() -> None:
    ways = [way["required"] for way in recipe_schema()["$defs"]["Corpus"]["oneOf"]]
    assert ways == [["source", "target"], ["tsv"], ["folder"], ["builtin"]]


def test_keys_are_dotted_with_default_and_sentence() -> None:
    keys = {key.name: key for key in recipe_keys()}
    assert keys["name"].default == "required"
    assert keys["clean.max_words"].default == "80"
    assert keys["data.train.N.weight"].default == "1.0"
    assert keys["data.valid.builtin.pairs"].default == "required"
    assert all(key.sentence.endswith(".") for key in keys.values())


def test_a_recipe_cannot_be_changed() -> None:
    recipe = Recipe.model_validate({"name": "a", "data": {"train": [{"tsv": "/a.tsv"}]}})
    with pytest.raises(ValidationError, match="frozen"):
        recipe.seed = 2
