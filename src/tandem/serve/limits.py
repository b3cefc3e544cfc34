"""What the server takes on: lengths, waiting lines and time."""

from dataclasses import dataclass

__all__ = ["MOST_BEAM", "MOST_BEST", "MOST_FIELDS", "MOST_LINE_CHARACTERS", "Limits"]

MOST_BEAM = 8
MOST_BEST = 8
MOST_LINE_CHARACTERS = 5_000
"""A line is in one batch, for which all others wait."""
MOST_FIELDS = 100

ESCAPED_BYTES = 12
"""A character of JSON that is written as two \\uXXXX."""
ROOM_BYTES = 65_536
"""For all that is not text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a request and of what waits."""

    characters: int = 20_000
    """Of all texts of a request."""
    sentences: int = 500
    """Lines of all texts of a request."""
    queue: int = 2_000
    """Lines that may wait for a model."""
    deadline_s: float = 30.0
    """From the end of a request to its answer."""

    @property
    def body_bytes(self) -> int:
        """No request within the limits is longer, but for white space."""
        return self.characters * ESCAPED_BYTES + ROOM_BYTES
