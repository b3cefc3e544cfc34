"""BLEU, chrF and TER of a translated text, each with its interval and sacreBLEU's signature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tandem.errors import TandemError
from tandem.progress import SILENT, Progress
from tandem.translate.score import FEWEST, build_bleu, corpus_bleu, drawn_sums, middle_of

__all__ = ["METRICS", "Counted", "Measured", "Metric", "Rules", "count", "measure"]

Metric: TypeAlias = Literal["bleu", "chrf", "ter"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf", "ter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How texts are compared."""

    tokenize: str = "13a"
    """How sacreBLEU splits words for BLEU; `none` for text that is already split."""
    lowercase: bool = False

    def __post_init__(self) -> None:
        """Refuse a tokenizer that there is not."""
        if self.tokenize not in BLEU.TOKENIZERS:
            raise TandemError(
                f"sacreBLEU has no tokenizer {self.tokenize!r}: use one of {', '.join(BLEU.TOKENIZERS)}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One score of one text."""

    metric: Metric
    score: float
    low: float | None
    """Lower end of the 95 % interval, by resampling sentences; None where they are too few."""
    high: float | None
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """What a metric counts in each sentence, a row a sentence, and how it makes a score of sums."""

    metric: Metric
    counts: NDArray[np.float64]
    scores: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    signature: str


def measure(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[Metric] = ("bleu", "chrf"),
    rules: Rules | None = None,
    progress: Progress = SILENT,
) -> list[Measured]:
    """Score detokenised text, a line a sentence, against one reference text or several."""
    found = []
    with progress.bar("scoring", total=len(metrics)) as bar:
        for metric in metrics:
            found.append(_measured(count(metric, hypotheses, references, rules=rules or Rules())))
            bar.advance(1)
    return found


def count(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, rules: Rules
) -> Counted:
    """Count what the metric counts, sentence by sentence."""
    _refuse_unpaired(hypotheses, references)
    judge = _build(metric, rules)
    lines = [line.rstrip() for line in hypotheses]
    answers = [[line.rstrip() for line in reference] for reference in references]
    counts = np.array(judge._extract_corpus_statistics(lines, answers), np.float64)  # noqa: SLF001

    def scores(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        if metric == "bleu":
            return corpus_bleu(sums)
        return np.array([judge._compute_score_from_stats(list(row)).score for row in sums])  # noqa: SLF001

    return Counted(metric=metric, counts=counts, scores=scores, signature=str(judge.get_signature()))


def _measured(counted: Counted) -> Measured:
    low, high = _interval(counted) if len(counted.counts) >= FEWEST else (None, None)
    return Measured(
        metric=counted.metric,
        score=counted.scores(counted.counts.sum(axis=0, keepdims=True)).item(),
        low=low,
        high=high,
        signature=counted.signature,
    )


def _interval(counted: Counted) -> tuple[float, float]:
    return middle_of(np.concatenate([counted.scores(sums) for (sums,) in drawn_sums([counted.counts])]))


def _build(metric: Metric, rules: Rules) -> Any:
    if metric == "bleu":
        return build_bleu(tokenize=rules.tokenize, lowercase=rules.lowercase)
    if metric == "chrf":
        return CHRF(lowercase=rules.lowercase)
    return TER()  # without regard to case, as is the custom


def _refuse_unpaired(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not references:
        raise TandemError("There is nothing to compare with: give at least one reference text.")
    for reference in references:
        if len(hypotheses) != len(reference):
            raise TandemError(
                f"There are {len(hypotheses):,} translations but {len(reference):,} references: "
                "give one reference for each."
            )
    if not hypotheses:
        raise TandemError("There is nothing to score: give at least one sentence.")
