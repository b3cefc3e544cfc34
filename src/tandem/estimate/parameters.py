"""How many numbers a model learns."""

from tandem.config import ModelSection, Recipe

__all__ = ["count_parameters", "vocabulary_of"]

_PADDED_TO = 8


def vocabulary_of(recipe: Recipe) -> int:
    """Pieces that the recipe asks for, padded as prepared data has them; a text may turn out to have fewer."""
    return -(-recipe.subword.vocabulary // _PADDED_TO) * _PADDED_TO


def count_parameters(model: ModelSection, *, source_vocabulary: int, target_vocabulary: int) -> int:
    """Weights and biases; a shared matrix counts once."""
    width, inner = model.width, model.feed_forward * (2 if model.gated else 1)
    norm = width if model.norm == "rms" else 2 * width
    attention = 4 * width * (width + 1)
    feed_forward = inner * (width + 1) + width * (model.feed_forward + 1)
    encoder = model.encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = model.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    ends = 2 * norm if model.norm_place == "pre" else 0
    pieces = {
        "all": target_vocabulary,
        "target": source_vocabulary + target_vocabulary,
        "none": source_vocabulary + 2 * target_vocabulary,
    }[model.tied]
    return encoder + decoder + ends + pieces * width
