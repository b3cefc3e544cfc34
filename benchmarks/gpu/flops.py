"""How much arithmetic training needs, by the shape of the model and the lengths of sentences, without padding."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.config import ModelSection

__all__ = ["PEAK_FLOPS", "Lengths", "training_flops"]

PEAK_FLOPS = 790e12
"""What matrix products in bf16 reach on one H200, a second."""

_BACKWARD_AND_FORWARD = 3


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
    def of(cls, source_tokens: NDArray[np.integer], target_tokens: NDArray[np.integer]) -> "Lengths":
        """Take the means of two columns of lengths."""
        source, target = source_tokens.astype(np.float64), target_tokens.astype(np.float64)
        return cls(
            source=float(source.mean()),
            target=float(target.mean()),
            source_source=float((source * source).mean()),
            target_target=float((target * target).mean()),
            target_source=float((target * source).mean()),
        )


def training_flops(model: ModelSection, *, vocabulary: int, lengths: Lengths) -> float:
    """Return the operations of forward and backward for one target token, its share of the source included."""
    width, inner = model.width, model.feed_forward * (3 if model.gated else 2)
    # Weights that a token is multiplied with. A source token also makes the keys and values of every decoder layer.
    source_weights = model.encoder_layers * width * (4 * width + inner) + model.decoder_layers * 2 * width**2
    target_weights = model.decoder_layers * width * (6 * width + inner) + width * vocabulary
    products = source_weights * lengths.source + target_weights * lengths.target
    # Queries times keys and weights times values; of the target's own tokens half are not seen yet.
    seen = model.encoder_layers * lengths.source_source
    seen += model.decoder_layers * (lengths.target_target / 2 + lengths.target_source)
    forward = 2 * products + 4 * width * seen
    return _BACKWARD_AND_FORWARD * forward / lengths.target
