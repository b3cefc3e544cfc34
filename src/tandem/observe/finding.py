"""A finding: one question about a run, answered from measurements, with all that the answer rests on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Confidence", "Evidence", "Finding", "Verdict"]

Verdict: TypeAlias = Literal["yes", "no", "partly", "measured", "cannot tell"]
"""`measured` answers a question that asks for a value, not for a yes."""

Confidence: TypeAlias = Literal["high", "medium", "low", "none"]
"""`none` goes with `cannot tell`, and only with it."""


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
