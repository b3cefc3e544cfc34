"""What a run is: pydantic sections read from a YAML recipe and overrides."""

from tandem.config.batch import BatchSection
from tandem.config.checkpoint import CheckpointSection
from tandem.config.clean import CleanSection
from tandem.config.data import BuiltinCorpus, Corpus, DataSection
from tandem.config.difference import differences, may_change_on_resume
from tandem.config.evaluate import EvaluateSection
from tandem.config.exchange import ExchangeSection
from tandem.config.keys import Key, recipe_keys
from tandem.config.load import LoadedRecipe, load_recipe
from tandem.config.model import ModelSection
from tandem.config.optim import OptimSection
from tandem.config.recipe import Recipe
from tandem.config.schema import recipe_schema
from tandem.config.subword import SubwordSection
from tandem.config.telemetry import TelemetrySection
from tandem.config.train import TrainSection
from tandem.config.write import recipe_yaml

__all__ = [
    "BatchSection",
    "BuiltinCorpus",
    "CheckpointSection",
    "CleanSection",
    "Corpus",
    "DataSection",
    "EvaluateSection",
    "ExchangeSection",
    "Key",
    "LoadedRecipe",
    "ModelSection",
    "OptimSection",
    "Recipe",
    "SubwordSection",
    "TelemetrySection",
    "TrainSection",
    "differences",
    "load_recipe",
    "may_change_on_resume",
    "recipe_keys",
    "recipe_schema",
    "recipe_yaml",
]
