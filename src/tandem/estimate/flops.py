"""How much arithmetic a target token takes, by the shape of the model and the lengths of sentences, without padding."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tandem.config import ModelSection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WMT_LENGTHS", "Lengths", "forward_flops", "training_flops"]

_FORWARD_AND_BACKWARD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Means over the pairs of a text; tokens count one end mark a sentence."""

    source: float
    target: float
    source_source: float
    """Of the square of the source's length: what its tokens look at."""
    target_target: float
    target_source: float

    @classmethod
    def of(cls, source_tokens: "NDArray[np.integer]", target_tokens: "NDArray[np.integer]") -> "Lengths":
        """Take the means of two columns of lengths."""
        source, target = source_tokens.astype("float64"), target_tokens.astype("float64")
        return cls(
            source=float(source.mean()),
            target=float(target.mean()),
            source_source=float((source * source).mean()),
            target_target=float((target * target).mean()),
            target_source=float((target * source).mean()),
        )


WMT_LENGTHS = Lengths(
    source=27.0, target=28.7, source_source=968.0, target_target=1095.0, target_source=1000.0
)
"""Of WMT English to German in 32,000 joint pieces: for a recipe whose text nobody has counted yet."""


def forward_flops(model: ModelSection, *, vocabulary: int, lengths: Lengths) -> float:
    """Operations of the forward pass for one target token, its share of the source included."""
    width, inner = model.width, model.feed_forward * (3 if model.gated else 2)
    # Weights that a token is multiplied with. A source token also makes the keys and values of every decoder layer.
    source_weights = model.encoder_layers * width * (4 * width + inner) + model.decoder_layers * 2 * width**2
    target_weights = model.decoder_layers * width * (6 * width + inner) + width * vocabulary
    products = source_weights * lengths.source + target_weights * lengths.target
    # Queries times keys and weights times values; of the target's own tokens half are not seen yet.
    seen = model.encoder_layers * lengths.source_source
    seen += model.decoder_layers * (lengths.target_target / 2 + lengths.target_source)
    return (2 * products + 4 * width * seen) / lengths.target


def training_flops(model: ModelSection, *, vocabulary: int, lengths: Lengths) -> float:
    """Operations of forward and backward for one target token, its share of the source included."""
    return _FORWARD_AND_BACKWARD * forward_flops(model, vocabulary=vocabulary, lengths=lengths)
