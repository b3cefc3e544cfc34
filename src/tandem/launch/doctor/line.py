"""One result of an examination, as a person reads it."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Line", "Verdict"]

Verdict = Literal["fine", "poor", "broken"]
"""Fit; works, but not well; training would fail, or hardly move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was looked at, what was found, and what to do about it."""

    host: str
    """A host, or two of them as "a → b"."""
    what: str
    value: str
    """With its unit."""
    verdict: Verdict = "fine"
    cure: str = ""
    """A sentence; empty where all is fine."""
    step_s: float = 0.0
    """Seconds that it adds to a step of the recipe, at most; 0 where it adds none, or nothing says how many."""
