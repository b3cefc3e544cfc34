"""Whether one translated text is better than another, or whether chance could have made the difference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tandem.errors import TandemError
from tandem.translate.measure import Counted, Metric, Rules, count
from tandem.translate.score import FEWEST, TRIALS, drawn_sums

__all__ = ["CHANCE", "Compared", "compare"]

CHANCE = 0.05
"""Differences that chance makes at least this often do not tell two texts apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two texts of the same sentences under one metric."""

    metric: Metric
    first: float
    second: float
    chance: float | None
    """How often chance alone makes such a difference (the p-value), by paired bootstrap of the sentences.

    None where they are too few to tell.
    """
    signature: str

    @property
    def is_told_apart(self) -> bool:
        """Whether the difference is more than chance."""
        return self.chance is not None and self.first != self.second and self.chance < CHANCE

    @property
    def is_better(self) -> bool:
        """Whether the first has the better score, by chance or not; in TER less is better."""
        return self.first < self.second if self.metric == "ter" else self.first > self.second


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: Metric = "bleu",
    rules: Rules | None = None,
) -> Compared:
    """Compare two translations of the same sentences, as sacreBLEU's paired bootstrap does."""
    if len(first) != len(second):
        raise TandemError(
            f"There are {len(first):,} translations, but {len(second):,} to compare them with: "
            "give translations of the same sentences."
        )
    one, other = (count(metric, text, references, rules=rules or Rules()) for text in (first, second))
    scores = [one.scores(each.counts.sum(axis=0, keepdims=True)).item() for each in (one, other)]
    return Compared(
        metric=metric,
        first=scores[0],
        second=scores[1],
        chance=_chance(one, other, abs(scores[0] - scores[1])) if len(first) >= FEWEST else None,
        signature=one.signature,
    )


def _chance(one: Counted, other: Counted, difference: float) -> float:
    drawn = np.concatenate(
        [one.scores(sums) - one.scores(others) for sums, others in drawn_sums([one.counts, other.counts])]
    )
    # Were there no difference, draws would lie around 0 as they lie around their mean.
    by_chance = np.abs(drawn - drawn.mean()) >= difference
    return (int(by_chance.sum()) + 1) / (TRIALS + 1)
