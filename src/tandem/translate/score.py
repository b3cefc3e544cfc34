"""BLEU and chrF as sacreBLEU counts them, with the signatures that say how."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from tandem.errors import TandemError

__all__ = ["Scores", "score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Both scores run from 0 to 100."""

    bleu: float
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
    if tokenize not in BLEU.TOKENIZERS:
        raise TandemError(
            f"sacreBLEU has no tokenizer {tokenize!r}: use one of {', '.join(BLEU.TOKENIZERS)}."
        )
    # `force` only keeps sacreBLEU from warning of tokenised text, which "none" says it is.
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    chrf = CHRF(lowercase=lowercase)
    lines = [line.rstrip() for line in hypotheses]
    answers = [[line.rstrip() for line in references]]
    return Scores(
        bleu=bleu.corpus_score(lines, answers).score,
        chrf=chrf.corpus_score(lines, answers).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(lines),
    )
