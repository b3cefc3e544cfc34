"""BLEU and chrF as sacreBLEU counts them, with the signatures that say how."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from tandem.errors import TandemError

__all__ = [
    "FEWEST",
    "Scores",
    "bleu_interval",
    "build_bleu",
    "corpus_bleu",
    "drawn_sums",
    "middle_of",
    "score",
]

SEED = 20_140_901
TRIALS = 1_000
AT_ONCE = 4_000_000
"""Sentences drawn at once, for the sake of memory."""
ORDERS = 4
FEWEST = 30
"""Sentences below which drawing them again says nothing of other sentences: no interval, and no p."""
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""What sacreBLEU must be installed with, by tokenizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Both scores run from 0 to 100."""

    bleu: float
    bleu_low: float
    """Lower end of the 95 % interval, by resampling sentences."""
    bleu_high: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    sentences: int


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> Scores:
    """Score detokenised text, a line a sentence; `tokenize` "none" takes words as white space parts them."""
    if len(hypotheses) != len(references):
        raise TandemError(
            f"There are {len(hypotheses):,} translations but {len(references):,} references: "
            "give one reference for each."
        )
    if not hypotheses:
        raise TandemError("There is nothing to score: give at least one sentence.")
    bleu = build_bleu(tokenize=tokenize, lowercase=lowercase)
    chrf = CHRF(lowercase=lowercase)
    lines = [line.rstrip() for line in hypotheses]
    answers = [[line.rstrip() for line in references]]
    # What `corpus_score` adds up, kept by sentence: splitting words twice would double the time.
    counts = np.array(bleu._extract_corpus_statistics(lines, answers), np.int64)  # noqa: SLF001
    low, high = bleu_interval(counts)
    return Scores(
        bleu=corpus_bleu(counts.sum(axis=0, keepdims=True)).item(),
        bleu_low=low,
        bleu_high=high,
        chrf=chrf.corpus_score(lines, answers).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(lines),
    )


def build_bleu(*, tokenize: str, lowercase: bool) -> BLEU:
    """SacreBLEU's BLEU; a tokenizer that it cannot have is told in one sentence."""
    if tokenize not in BLEU.TOKENIZERS:
        raise TandemError(
            f"sacreBLEU has no tokenizer {tokenize!r}: use one of {', '.join(BLEU.TOKENIZERS)}."
        )
    try:
        # `force` only keeps sacreBLEU from warning of tokenised text, which "none" says it is.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    except (ImportError, OSError, RuntimeError) as error:
        if tokenize in _EXTRAS:
            raise TandemError(
                f"The tokenizer {tokenize} needs packages that are not installed: "
                f"pip install 'sacrebleu[{_EXTRAS[tokenize]}]'."
            ) from error
        raise TandemError(
            f"The model of the tokenizer {tokenize} is not in sacreBLEU's cache and cannot be fetched over the network "
            f"({error}): connect this machine, or copy ~/.sacrebleu/models from one where it was used."
        ) from error


def bleu_interval(counts: NDArray[np.int64]) -> tuple[float, float]:
    """The 95 % interval of corpus BLEU: what it would be on as many sentences drawn from these, again and again.

    `counts` has a row for each sentence, as sacreBLEU counts them: both lengths, matches by order, n-grams by order.
    """
    scores = np.concatenate([corpus_bleu(sums) for (sums,) in drawn_sums([counts])])
    return middle_of(scores)


def drawn_sums(counts: Sequence[NDArray[Any]]) -> Iterator[list[NDArray[np.float64]]]:
    """Sums over as many sentences as there are, drawn again and again, a row a draw; all counts share a draw."""
    random, size = np.random.default_rng(SEED), len(counts[0])
    portion = max(1, AT_ONCE // size)
    for start in range(0, TRIALS, portion):
        trials = min(portion, TRIALS - start)
        drawn = random.integers(0, size, (trials, size)) + size * np.arange(trials)[:, None]
        often = np.bincount(drawn.ravel(), minlength=trials * size).reshape(trials, size)
        # Whole numbers below 2^53 stay exact, and floats multiply much faster.
        yield [often.astype(np.float64) @ each.astype(np.float64) for each in counts]


def middle_of(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Where the middle 95 % begin and end."""
    low, high = np.quantile(scores, (0.025, 0.975))
    return float(low), float(high)


def corpus_bleu(sums: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """BLEU of each row of summed counts, as sacreBLEU computes it with its exponential smoothing."""
    length, reference = sums[:, 0], sums[:, 1]
    matches, grams = sums[:, 2 : 2 + ORDERS], sums[:, 2 + ORDERS :]
    # The k-th order without a match counts as 1 / 2^k of one.
    missed = np.cumsum(matches == 0, axis=1)
    smoothed = np.where(matches > 0, matches, 0.5**missed)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(smoothed / grams).mean(axis=1)
        brevity = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        scores = 100 * brevity * np.exp(logs)
    return np.where((grams > 0).all(axis=1) & (matches.sum(axis=1) > 0), scores, 0.0)
