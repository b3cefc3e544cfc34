"""What the numbers of a run mean, in a sentence each, for all pages that show them."""

from collections.abc import Mapping

from tandem.observe.markup import Html, tag

__all__ = ["EVALUATIONS", "NUMBERS", "terms_html"]

NUMBERS: Mapping[str, str] = {
    "epoch": "how often the training text has been begun, counted from 1.",
    "loss": "what the steps minimise, a target token: with smoothing and dropout, and so higher than the losses of "
    "evaluations. A mean over the last steps; of an imported run, what its tool minimised.",
    "nll": "negative log-likelihood of the same tokens: without smoothing, but still with dropout.",
    "target tokens/s": "target tokens a second of all ranks together, over the last steps; padding, evaluations and "
    "checkpoints do not count.",
    "learning rate": "how far the last step went along its direction.",
    "gradient norm": "length of all gradients together at the last step, before clipping. Single peaks are usual; one "
    "that climbs for long comes before a run that diverges.",
    "wall time": "from the first record of the log to the last, pauses and all.",
}
"""By the names of the tiles."""
EVALUATIONS: Mapping[str, str] = {
    "valid loss": "negative log-likelihood a target token of text that is not trained on, without smoothing and "
    "dropout: lower is better.",
    "probe loss": "the same of a fixed set of training pairs. Only the room between these two tells of overfitting.",
    "BLEU": "of real translations of the valid text by beam search, detokenised, as sacreBLEU computes it; from 0 to "
    "100, higher is better.",
    "chrF": "the same by pieces of words instead of words, which is kinder to endings; from 0 to 100.",
    "took": "how long the evaluation lasted; training waits for it.",
}
"""By the columns of the table."""


def terms_html(terms: Mapping[str, str]) -> Html:
    """A list of terms, each with its meaning."""
    return tag("ul", *(tag("li", tag("b", name), f": {meaning}") for name, meaning in terms.items()))
