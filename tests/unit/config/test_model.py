"""The model section: presets fill what is not given, and shapes that cannot be are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from tandem.config import ModelSection


@pytest.mark.parametrize(
    ("preset", "shape"),
    [
        ("tiny", (128, 4, 2, 2, 256, 0.1)),
        ("small", (512, 4, 6, 6, 1024, 0.1)),
        ("base", (512, 8, 6, 6, 2048, 0.1)),
        ("big", (1024, 16, 6, 6, 4096, 0.3)),
    ],
)
def test_a_preset_is_a_whole_shape(preset: str, shape: tuple[float, ...]) -> None:
    model = ModelSection.model_validate({"preset": preset})
    found = model.width, model.heads, model.encoder_layers, model.decoder_layers, model.feed_forward
    assert (*found, model.dropout) == shape


def test_what_is_given_wins_over_the_preset() -> None:
    model = ModelSection(preset="big", dropout=0.1, decoder_layers=2)
    assert (model.width, model.dropout, model.encoder_layers, model.decoder_layers) == (1024, 0.1, 6, 2)


def test_without_a_preset_the_model_is_base() -> None:
    assert ModelSection() == ModelSection(preset="base") == ModelSection.model_validate(None)


def test_a_filled_section_stays_as_it_is() -> None:
    model = ModelSection(preset="tiny", heads=2)
    assert ModelSection.model_validate(model.model_dump()) == model


@pytest.mark.parametrize("preset", ["huge", 5, None, ["base"]])
def test_a_preset_that_does_not_exist_is_refused(preset: object) -> None:
    with pytest.raises(ValidationError, match="'tiny', 'small', 'base' or 'big'"):
        ModelSection.model_validate({"preset": preset})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"heads": 7}, "heads is 7, which does not divide width, 512; make it 8"),
        ({"width": 128, "heads": 300}, "heads is 300, which does not divide width, 128; make it 128"),
        (
            {"width": 24, "heads": 8, "positions": "rotary"},
            (
                "heads is 8, which leaves 3 of the width to each head, but positions rotary needs an even "
                "number: change heads or width, or make positions sinusoidal"
            ),
        ),
    ],
)
def test_heads_must_share_the_width(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ModelSection.model_validate(values)
    (error,) = caught.value.errors()
    assert error["msg"] == f"Value error, {sentence}"


@pytest.mark.parametrize(
    "values",
    [
        {"width": 0},
        {"width": 33, "heads": 3},
        {"heads": 0},
        {"encoder_layers": 0},
        {"decoder_layers": 0},
        {"feed_forward": 0},
        {"dropout": 1.0},
        {"attention_dropout": -0.1},
        {"activation_dropout": 1},
        {"norm": "batch"},
        {"tied": "source"},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelSection.model_validate(values)
