"""Where the story of a simulated run is while it is told."""

from dataclasses import dataclass

import numpy as np
from benchmarks.truth.curves import Judged
from benchmarks.truth.journal import Journal
from benchmarks.truth.scenario import Scenario
from benchmarks.truth.timing import Timing
from numpy.typing import NDArray

__all__ = ["Telling"]

_PREPARED_S = 6.0


@dataclass(slots=True)
class Telling:
    """Where the story is while it is told."""

    scenario: Scenario
    journal: Journal
    timing: Timing
    judged: Judged
    numbers: NDArray[np.int64]
    """Step of each row of the timing."""
    shift_s: float = _PREPARED_S
    """From the timing's clock to the run's."""
    saved: tuple[int, ...] = ()
    saves: int = 0
    lost_s: float = 0.0
    """From the end of the last work that stands to the start after it, over all restarts."""

    def host(self, rank: int) -> str:
        """Where a rank lives."""
        return f"node{rank // self.scenario.hardware.ranks_per_host + 1}"

    @property
    def logged(self) -> int:
        """Ranks whose logs are there."""
        return min(self.scenario.hardware.ranks, self.scenario.seen.ranks)

    @property
    def hosts(self) -> tuple[str, ...]:
        """All of them; the first is the head."""
        return tuple(f"node{number + 1}" for number in range(self.scenario.hardware.hosts))
