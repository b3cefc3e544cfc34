"""A recipe that is prepared in seconds and trained in less."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.config import Recipe, load_recipe
from tandem.data.prepare import prepare

RECIPE = """
name: micro
data:
  train:
    - builtin: {pairs: 600}
  valid:
    builtin: {pairs: 30, split: valid}
subword: {vocabulary: 512, max_pieces: 64}
batch: {target_tokens: 512}
model: {preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}
optim: {learning_rate: 2.0e-3, warmup_steps: 4}
train: {max_steps: 6}
evaluate: {every_steps: null, probe_pairs: 40, beam: 2, samples: 2}
checkpoint: {every_steps: 2, keep_last: 9}
telemetry: {sample_seconds: null}
"""

RecipeWith = Callable[..., Recipe]


@pytest.fixture(scope="session")
def recipe_with(tmp_path_factory: pytest.TempPathFactory) -> RecipeWith:
    """The recipe with some values changed, as on a command line; the data is prepared once."""
    folder = tmp_path_factory.mktemp("micro")
    file = folder / "micro.yaml"
    file.write_text(RECIPE)

    def build(*overrides: str) -> Recipe:
        return load_recipe(file, [f"data.folder={folder / 'data'}", *overrides]).recipe

    prepare(build(), workers=1)
    return build


@pytest.fixture
def micro(recipe_with: RecipeWith) -> Recipe:
    """The recipe as it is."""
    return recipe_with()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder."""
    return tmp_path / "run"
