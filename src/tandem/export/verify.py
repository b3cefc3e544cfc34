"""Whether an exported model translates as the one that it was made from, found out by letting both translate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sacrebleu.metrics.chrf import CHRF

from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.translate.engine import Engine, Found, Sentence
from tandem.translate.wish import Wish

__all__ = ["UnlikeError", "Verified", "refuse_unlike", "verify_export"]

EXACT = 1e-3
"""The most by which scores may differ where all numbers are kept; rounding alone stays far below."""

ALIKE = 60.0
"""The least chrF of the exported model's translations against the source's own."""


class UnlikeError(TandemError):
    """An exported model that is not the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How alike two models are on a sample."""

    sentences: int
    differing: int
    """Sentences whose translations are not the same, piece for piece."""
    largest_score_difference: float
    """Between the exported model's scores and the source model's of the same translations."""
    likeness: float
    """chrF of the exported model's translations against the source's own: 100 where all are the same."""

    @property
    def differing_share(self) -> float:
        """From 0 to 1."""
        return self.differing / self.sentences

    def __str__(self) -> str:
        """One sentence for a person."""
        same = self.sentences - self.differing
        return (
            f"{same:,} of {self.sentences:,} sentences are translated the same ({self.differing_share:.1%} differ, "
            f"chrF {self.likeness:.1f} between the two), and scores differ by at most "
            f"{self.largest_score_difference:.2g}"
        )


def verify_export(
    source: Engine, exported: Engine, sentences: Sequence[Sentence], *, subword: Subword, wish: Wish
) -> Verified:
    """Translate the sentences with both; the source model is also asked what it thinks of the other's translations."""
    wish = replace(wish, best=1, sampling=None, token_scores=False, alignment=False)
    ours = _firsts(source.search(sentences, wish), "The model")
    theirs = _firsts(exported.search(sentences, wish), "The exported model")
    # Forced to say all of it, the source model gives its own score of the translation.
    forced = [
        replace(sentence, prefix=found.ids, most=len(found.ids))
        for sentence, found in zip(sentences, theirs, strict=True)
    ]
    judged = _firsts(source.search(forced, wish), "The model")
    texts = [[subword.target.decode(found.ids) for found in some] for some in (theirs, ours)]
    return Verified(
        sentences=len(sentences),
        differing=sum(one.ids != other.ids for one, other in zip(ours, theirs, strict=True)),
        largest_score_difference=max(
            abs(one.score - other.score) for one, other in zip(theirs, judged, strict=True)
        ),
        # Of texts without a letter, chrF says that they have nothing in common.
        likeness=100.0 if texts[0] == texts[1] else CHRF().corpus_score(texts[0], [texts[1]]).score,
    )


def refuse_unlike(verified: Verified, *, exact: bool) -> None:
    """Refuse an export that is not the same model; `exact` where no number was rounded."""
    if exact and verified.largest_score_difference > EXACT:
        raise UnlikeError(
            f"The exported model is not the same ({verified}), so it was not kept: this is a fault of the export; "
            "please report it with the recipe's model section."
        )
    if verified.likeness < ALIKE:
        cure = (
            "please report it with the recipe's model section"
            if exact
            else "take a quantization with more bits, or train longer"
        )
        raise UnlikeError(
            f"The exported model translates otherwise ({verified}), so it was not kept: {cure}."
        )


def _firsts(found: Sequence[Sequence[Found]], whose: str) -> list[Found]:
    if not all(found):
        raise TandemError(
            f"{whose} gives no finite probability to some sentences: it has diverged; export an earlier checkpoint."
        )
    return [some[0] for some in found]
