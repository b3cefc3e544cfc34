"""A drafted answer: its verdict and grounds, before it is known whether these allow an answer at all."""

from dataclasses import dataclass

from tandem.observe.confidence import Grounds, confidence_of
from tandem.observe.finding import Evidence, Finding, Question, Verdict

__all__ = ["Draft", "finish_draft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer, before the evidence is put to it."""

    verdict: Verdict = "cannot tell"
    grounds: Grounds | None = None
    """None where it cannot be told."""
    answer: str
    advice: str = ""
    missing: tuple[str, ...] = ()
    would_change: str = ""


def finish_draft(
    question: Question, draft: Draft, *, evidence: tuple[Evidence, ...], beside: str = ""
) -> Finding:
    """The answer, with a sentence beside it; `cannot tell` where its grounds allow none."""
    grounds = draft.grounds
    if grounds is not None and confidence_of(grounds) != "none":
        return question.answer(
            draft.verdict,
            grounds,
            f"{draft.answer}{beside}",
            evidence=evidence,
            advice=draft.advice,
            missing=tuple(dict.fromkeys((*draft.missing, *grounds.lacks))),
            would_change=draft.would_change,
        )
    _, _, text = draft.answer.partition(": ")
    return question.cannot_tell(
        f"Cannot tell: {text or draft.answer}{beside}",
        evidence=evidence,
        advice=draft.advice,
        missing=draft.missing,
    )
