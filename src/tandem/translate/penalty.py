"""How hypotheses of unequal length are compared."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["LengthPenalty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPenalty:
    """Divides a hypothesis's log-probability; lengths count pieces and the end mark."""

    alpha: float = 0.6
    """From 0 (longer is worse, as the probability says) upwards (longer is better)."""

    kind: Literal["gnmt", "power"] = "gnmt"
    """`gnmt` is ((5 + length) / 6)^alpha; `power` is length^alpha, which is the mean for alpha 1."""

    def __post_init__(self) -> None:
        """Refuse what would make the bound on live hypotheses wrong."""
        if not 0 <= self.alpha < float("inf"):
            raise ValueError(f"alpha is {self.alpha}, but must be 0 or more")

    def at(self, length: int) -> float:
        """What the log-probability of a hypothesis of this length is divided by; never falls with length."""
        return float((length if self.kind == "power" else (5 + length) / 6) ** self.alpha)
