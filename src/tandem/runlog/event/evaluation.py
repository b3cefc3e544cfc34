"""Events of evaluation: losses, scores and samples of the model after a step."""

import math
from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = [
    "EvaluationFinished",
    "EvaluationStarted",
    "LossMeasured",
    "SampleTranslated",
    "ScoreImported",
    "TranslationScored",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationStarted(Event):
    """Training paused to look at the model."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMeasured(Event):
    """The loss on a fixed set of pairs, without dropout and without smoothing."""

    step: int
    set: str
    """`valid`, or `probe`: training pairs measured in the same way."""
    loss: float
    """Negative log-likelihood per target token: its exponential is the perplexity."""
    target_tokens: int
    pairs: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationScored(Event):
    """A set was translated and compared with its references."""

    step: int
    set: str
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    sentences: int
    hypotheses: str
    """File in the run folder that keeps the translations; empty where it could not be written."""
    duration_s: float
    bleu_low: float = math.nan
    """Lower end of the 95 % interval of BLEU, by resampling sentences; nan where it was not made."""
    bleu_high: float = math.nan
    """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTranslated(Event):
    """One of the translations, to look at."""

    step: int
    set: str
    number: int
    """Of the sentence in its set, from 0."""
    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreImported(Event):
    """A number that another tool called a score; it is no BLEU of ours, and need not be one at all."""

    step: int
    set: str
    name: str
    """As that tool calls it."""
    value: float
    meaning: str
    """What it really is, as far as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFinished(Event):
    """Training goes on."""

    step: int
    duration_s: float
    is_best_loss: bool
    is_best_bleu: bool
