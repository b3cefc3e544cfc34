"""What a run is: pydantic sections read from a YAML recipe and overrides."""

from tandem.config.batch import BatchSection
from tandem.config.clean import CleanSection
from tandem.config.data import BuiltinCorpus, Corpus, DataSection
from tandem.config.keys import Key, recipe_keys
from tandem.config.load import LoadedRecipe, load_recipe
from tandem.config.recipe import Recipe
from tandem.config.schema import recipe_schema
from tandem.config.subword import SubwordSection
from tandem.config.write import recipe_yaml

__all__ = [
    "BatchSection",
    "BuiltinCorpus",
    "CleanSection",
    "Corpus",
    "DataSection",
    "Key",
    "LoadedRecipe",
    "Recipe",
    "SubwordSection",
    "load_recipe",
    "recipe_keys",
    "recipe_schema",
    "recipe_yaml",
]
