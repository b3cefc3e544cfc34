"""A question about a run, and a finding: its answer from measurements, with all that the answer rests on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tandem.observe.confidence import Confidence, Grounds, confidence_of, reason_of

__all__ = ["Confidence", "Evidence", "Finding", "Question", "Verdict", "as_verdict"]

Verdict: TypeAlias = Literal["yes", "no", "partly", "measured", "cannot tell"]
"""`measured` answers a question that asks for a value, not for a yes."""


_VERDICTS: dict[str, Verdict] = {name: name for name in get_args(Verdict)}


def as_verdict(answer: str) -> Verdict:
    """An answer of a scale as a verdict."""
    return _VERDICTS[answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One number that an answer rests on, or one text where there is no number."""

    name: str
    value: float | str
    unit: str = ""
    """As `s`, `bytes`, `bytes/s`, `share` (0 to 1), `tokens/s`, `flop/s`; empty for plain counts and texts."""
    low: float | None = None
    """Lower end of the 95 % interval, where there is one."""
    high: float | None = None
    definition: str
    """What exactly was measured or computed, with the formula."""
    figure: str = ""
    """Name of the figure that shows it, as `tandem.observe.figures.FIGURES` has it; empty where none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer to one of the eleven questions."""

    number: int
    """1 to 11."""
    key: str
    """A short name that never changes, as `network`."""
    question: str
    verdict: Verdict
    confidence: Confidence
    answer: str
    """The sentence that a person reads, with the numbers that matter."""
    evidence: tuple[Evidence, ...]
    advice: str
    """What to do about it; empty where there is nothing to do."""
    would_change: str
    """What would have to be measured or seen for another verdict."""
    missing: tuple[str, ...] = ()
    """Measurements that the answer lacks."""
    figure: str = ""
    """Name of the figure that shows it best."""
    about: str = ""
    """What the question means, in plain words: the definition that the answer goes by."""
    section: str = ""
    """Name of the section of docs/verdicts.md about it, as `tandem.observe.verdicts.sections` has it."""
    grounds: Grounds | None = None
    """What the confidence was computed from; None with `cannot tell`."""
    doubt: str = ""
    """What keeps the confidence below high; empty where nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One of the eleven questions: what it asks, and how its answers are made."""

    number: int
    """1 to 11."""
    key: str
    """A short name that never changes, as `network`; also that of its section."""
    question: str
    about: str
    """What the question means, in plain words."""
    would_change: str
    """What would have to be measured or seen for another verdict, where an answer does not say it better."""
    figure: str = ""
    """Name of the figure that shows an answer best, where the answer does not name another."""

    def answer(
        self,
        verdict: Verdict,
        grounds: "Grounds | Confidence",
        answer: str,
        *,
        evidence: tuple[Evidence, ...] = (),
        advice: str = "",
        missing: tuple[str, ...] = (),
        figure: str | None = None,
        would_change: str = "",
    ) -> Finding:
        """The question, answered; the confidence follows from the grounds."""
        confidence = confidence_of(grounds) if isinstance(grounds, Grounds) else grounds
        # There is no answer without confidence, and no confidence without an answer.
        if "cannot tell" in (verdict, "cannot tell" if confidence == "none" else ""):
            verdict, confidence = "cannot tell", "none"
        return Finding(
            number=self.number,
            key=self.key,
            question=self.question,
            verdict=verdict,
            confidence=confidence,
            answer=answer,
            evidence=evidence,
            advice=advice,
            would_change=would_change or self.would_change,
            missing=missing,
            figure=self.figure if figure is None else figure,
            about=self.about,
            section=self.key,
            grounds=grounds if isinstance(grounds, Grounds) and confidence != "none" else None,
            doubt=reason_of(grounds) if isinstance(grounds, Grounds) and confidence != "none" else "",
        )

    def cannot_tell(
        self,
        answer: str,
        *,
        evidence: tuple[Evidence, ...] = (),
        advice: str = "",
        missing: tuple[str, ...] = (),
        figure: str | None = None,
    ) -> Finding:
        """The question, which the log does not answer; `answer` says why."""
        return self.answer(
            "cannot tell",
            "none",
            answer,
            evidence=evidence,
            advice=advice,
            missing=missing,
            figure=figure,
        )
