"""Parameters are counted as the model has them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.config import ModelSection, load_recipe
from tandem.estimate.parameters import count_parameters, vocabulary_of
from tandem.model import Transformer, parameter_count

VARIANTS: list[dict[str, Any]] = [
    {"preset": "tiny"},
    {"preset": "small"},
    {"preset": "base"},
    {"preset": "big"},
    {"tied": "target"},
    {"tied": "none"},
    {"norm": "rms"},
    {"norm_place": "post"},
    {"norm": "rms", "norm_place": "post", "gated": True, "activation": "silu", "positions": "rotary"},
    {"encoder_layers": 3, "decoder_layers": 2, "feed_forward": 1000, "width": 96, "gated": True},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_the_count_is_that_of_the_built_model(variant: dict[str, Any]) -> None:
    section = ModelSection.model_validate(variant)
    source = 104 if section.tied == "all" else 72
    with torch.device("meta"):
        model = Transformer(section, source_vocabulary=source, target_vocabulary=104, pad=0)
    counted = count_parameters(section, source_vocabulary=source, target_vocabulary=104)
    assert counted == parameter_count(model)


def test_the_vocabulary_is_padded_as_prepared_data_has_it(repository: Path) -> None:
    recipe = repository / "recipes" / "demo.yaml"
    sizes = [
        vocabulary_of(load_recipe(recipe, [f"subword.vocabulary={each}"]).recipe) for each in (1000, 1001)
    ]
    assert sizes == [1000, 1008]
