"""What cleaning did, counted: lines in, pairs kept, dropped by reason with examples, mended by kind."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.data.corpus.pair import SentencePair

__all__ = ["EXAMPLES", "Tally"]

EXAMPLES = 3
"""Examples kept of each reason."""

EXAMPLE_CHARACTERS = 200


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of one chunk, or of many added up in the order of the text."""

    lines: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[SentencePair]] = field(default_factory=dict)

    def drop(self, reason: str, source: str, target: str, origin: str) -> None:
        """Count a dropped pair; the first few of each reason are kept to be shown."""
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            cut = [side[:EXAMPLE_CHARACTERS] for side in (source, target)]
            shown.append(SentencePair(source=cut[0], target=cut[1], origin=origin))

    def add(self, other: "Tally") -> None:
        """Add the tally of the text that follows."""
        self.lines += other.lines
        self.kept += other.kept
        self.dropped.update(other.dropped)
        self.mended.update(other.mended)
        for reason, pairs in other.examples.items():
            shown = self.examples.setdefault(reason, [])
            shown.extend(pairs[: EXAMPLES - len(shown)])

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        examples = {
            reason: [[pair.source, pair.target, pair.origin] for pair in pairs]
            for reason, pairs in self.examples.items()
        }
        return {
            "lines": self.lines,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "mended": dict(self.mended),
            "examples": examples,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Tally":
        """From what `to_json` gave."""
        examples = {
            reason: [
                SentencePair(source=source, target=target, origin=origin) for source, target, origin in pairs
            ]
            for reason, pairs in value["examples"].items()
        }
        return cls(
            lines=value["lines"],
            kept=value["kept"],
            dropped=Counter(value["dropped"]),
            mended=Counter(value["mended"]),
            examples=examples,
        )
