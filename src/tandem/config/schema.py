"""The JSON schema of a recipe, for editors."""

from typing import Any

from tandem.config.recipe import Recipe

__all__ = ["recipe_schema"]


def recipe_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that describes every key of a recipe."""
    schema = Recipe.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Tandem recipe"}
