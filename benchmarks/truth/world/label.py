"""A label: which answers to a question are right, and whether the log allows one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ANYTHING", "CANNOT_TELL", "MEASURED", "Expected", "Label", "by_borders"]

CANNOT_TELL = "cannot tell"
MEASURED = frozenset({"measured"})
ANYTHING = frozenset({"yes", "partly", "no", "measured", CANNOT_TELL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A number that the evidence of an answer must have."""

    value: float
    relative: float = 0.0
    absolute: float = 0.0

    def accepts(self, value: object) -> bool:
        """Whether the number is near enough."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        return abs(value - self.value) <= self.absolute + self.relative * abs(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The truth about one question."""

    truth: str
    """The verdict by the documented borders, and the number behind it."""
    accepted: frozenset[str]
    suffices: bool
    """Whether what is left of the log allows an answer."""
    reason: str = ""
    """Why `cannot tell` is acceptable, or what makes the case special."""
    numbers: Mapping[str, Expected] = field(default_factory=dict)
    """By the name of the evidence, which is compared where the answer has it."""
    words: str = ""
    """Text that the answer must have."""


def by_borders(
    share: float, borders: tuple[float, float], names: tuple[str, str, str], margin: float
) -> frozenset[str]:
    """The verdicts of every share within the margin: `names` from below the lower border upwards."""
    low, high = borders
    verdicts = set()
    for value in (share - margin, share, share + margin):
        verdicts.add(names[0] if value < low else names[1] if value < high else names[2])
    return frozenset(verdicts)
