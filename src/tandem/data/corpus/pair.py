"""A sentence pair: the unit that flows from raw text to the subword model."""

from dataclasses import dataclass

__all__ = ["SentencePair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """Two sentences that translate each other, and where they came from."""

    source: str
    target: str
    origin: str
    """Corpus name and line number, as `europarl:1234`."""
