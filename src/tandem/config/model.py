"""The model section: the shape of the Transformer."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tandem.config.section import Section

__all__ = ["ModelSection"]

# What differs from `base`, which is what the fields below have as defaults.
_PRESETS: Mapping[str, Mapping[str, int | float]] = MappingProxyType(
    {
        "tiny": {"width": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 256},
        "small": {"heads": 4, "feed_forward": 1024},
        "base": {},
        "big": {"width": 1024, "heads": 16, "feed_forward": 4096, "dropout": 0.3},
    }
)

Dropout = Annotated[float, Field(ge=0, lt=1)]
Layers = Annotated[int, Field(ge=1, le=1000)]


class ModelSection(Section):
    """The shape of the Transformer: a preset, and whatever should differ from it."""

    preset: Literal["tiny", "small", "base", "big"] = "base"
    """The shape that fills what is not given here; `base` and `big` are the first Transformer paper's."""

    width: Annotated[int, Field(ge=2, le=65_536, multiple_of=2)] = 512
    """Numbers that stand for one token between layers."""

    heads: Annotated[int, Field(ge=1, le=1024)] = 8
    """Attention heads of each layer; they share the width evenly."""

    encoder_layers: Layers = 6
    """Layers that read the source."""

    decoder_layers: Layers = 6
    """Layers that write the target."""

    feed_forward: Annotated[int, Field(ge=1, le=1_000_000)] = 2048
    """Inner width of the feed-forward part of each layer."""

    dropout: Dropout = 0.1
    """Share of each layer's results, and of embeddings, set to zero at random while training."""

    attention_dropout: Dropout = 0.0
    """Share of attention weights set to zero at random while training."""

    activation_dropout: Dropout = 0.0
    """Share of the feed-forward part's inner numbers set to zero at random while training."""

    norm: Literal["layer", "rms"] = "layer"
    """Normalisation: `layer` takes out mean and scale, `rms` the scale alone."""

    norm_place: Literal["pre", "post"] = "pre"
    """Normalise before each part of a layer, which trains steadily, or after it, as in the first paper."""

    activation: Literal["relu", "gelu", "silu"] = "relu"
    """The function between the two halves of the feed-forward part."""

    gated: bool = False
    """Multiply the activation with a second projection of the same input; adds half again to its weights."""

    positions: Literal["sinusoidal", "rotary"] = "sinusoidal"
    """How the model knows word order: waves added to embeddings, or rotations inside attention."""

    tied: Literal["all", "target", "none"] = "all"
    """Embeddings that share weights: source, target and output; target and output; or none."""

    @model_validator(mode="before")
    @classmethod
    def _filled_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        preset = values.get("preset")
        return {**(_PRESETS.get(preset, {}) if isinstance(preset, str) else {}), **values}

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what keeps heads from sharing the width."""
        if self.width % self.heads:
            yield (
                "heads",
                f"is {self.heads}, which does not divide width, {self.width}; make it {self._nearest_heads()}",
            )
        elif self.positions == "rotary" and self.width // self.heads % 2:
            sentence = (
                f"is {self.heads}, which leaves {self.width // self.heads} of the width to each head, but "
                "positions rotary needs an even number: change heads or width, or make positions sinusoidal"
            )
            yield "heads", sentence

    def _nearest_heads(self) -> int:
        divisors = (heads for heads in range(1, self.width + 1) if self.width % heads == 0)
        return min(divisors, key=lambda heads: abs(heads - self.heads))
