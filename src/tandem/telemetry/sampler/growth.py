"""How much counters have grown."""

import math
from collections.abc import Mapping

__all__ = ["Growth", "rate"]


def rate(grown: float, seconds: float) -> float:
    """How much a second; finer digits would be noise, and make the log longer."""
    return round(grown / seconds, 1)


class Growth:
    """Remembers counters from one look to the next."""

    def __init__(self) -> None:
        self._before: Mapping[str, int] = {}

    def since_last(self, now: Mapping[str, int]) -> Mapping[str, float]:
        """By name; nan for a counter that was not there before, or that began anew."""
        before, self._before = self._before, dict(now)
        grown = {name: value - before.get(name, value + 1) for name, value in now.items()}
        return {name: float(more) if more >= 0 else math.nan for name, more in grown.items()}
