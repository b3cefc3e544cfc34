"""What every event is, and the one that stands for those a reader cannot know."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.artefact import JsonValue

__all__ = ["Event", "Unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened; the class name is its name in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event that this version does not know or cannot read: kept as it was written."""

    kind: str
    fields: Mapping[str, JsonValue]
