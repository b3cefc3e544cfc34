"""The ids with a fixed meaning in a vocabulary."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["SpecialIds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialIds:
    """Ids of the pieces that are not text; the defaults are those of Tandem's own subword models."""

    unk: int = 0
    bos: int = 1
    eos: int = 2
    pad: int = 3

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "SpecialIds":
        """Read them from a manifest; raises KeyError where one is missing."""
        return cls(**{field.name: int(facts[field.name]) for field in fields(cls)})

    def to_facts(self) -> dict[str, int]:
        """Write them for a manifest."""
        return asdict(self)
