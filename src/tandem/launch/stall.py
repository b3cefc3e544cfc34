"""Whether the ranks still get on: a run in which nothing moves is ended, and the one that holds it up is named."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Stall", "Standing", "Watchdog"]

START_S = 900.0
"""How long the ranks may stand still before their first step: they read data, compile, look for what fits."""
SHORTEST_S = 60.0
"""How long they may stand still at least once they have made a step."""
TIMES = 10.0
"""How many times as long as ever before in this start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a rank's pulse said last."""

    step: int
    begun: int
    """Collectives that it entered."""
    done: int
    """Collectives that it left."""
    collective: str
    """The last one that it entered."""
    changed_s: float
    """When it last gave a sign of life, on its host's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Nothing has moved for too long."""

    rank: int
    """The one that the others wait for, as far as can be told."""
    step: int
    collective: str
    waited_s: float

    def __str__(self) -> str:
        return (
            f"nothing moved for {self.waited_s:.0f} s, the last collective being {self.collective or 'none'} "
            f"in step {self.step:,}"
        )


class Watchdog:
    """Looks at the pulses of all ranks of one start.

    A stall is a time without any change that is much longer than all such times before: it follows from measured
    steps, evaluations and checkpoints, and nobody has to guess it.
    """

    def __init__(self, now_s: float) -> None:
        self._changed_s = now_s
        self._longest_s = 0.0
        self._first_step: int | None = None
        self._has_stepped = False
        self._standings: dict[int, Standing] = {}

    @property
    def standings(self) -> Mapping[int, Standing]:
        """What each rank said last."""
        return self._standings

    @property
    def has_stepped(self) -> bool:
        """Whether a step was made since the start."""
        return self._has_stepped

    def take(self, standings: Mapping[int, Standing], now_s: float) -> None:
        """Hear from some of the ranks."""
        if all(self._standings.get(rank) == standing for rank, standing in standings.items()):
            return
        self._standings.update(standings)
        self._longest_s = max(self._longest_s, now_s - self._changed_s) if self._has_stepped else 0.0
        self._changed_s = now_s
        step = max(standing.step for standing in self._standings.values())
        if self._first_step is None:
            self._first_step = step
        self._has_stepped = self._has_stepped or step > self._first_step + 1

    def maybe_stall(self, now_s: float) -> Stall | None:
        """The stall, if there is one."""
        waited_s = now_s - self._changed_s
        if waited_s < self.limit_s:
            return None
        if not self._standings:
            return Stall(rank=0, step=0, collective="", waited_s=waited_s)
        # The others have entered a collective that this one has not; else whoever is not in one at all.
        rank, standing = min(
            self._standings.items(), key=lambda item: (item[1].begun, item[1].begun != item[1].done, item[0])
        )
        furthest = max(self._standings.values(), key=lambda each: each.begun)
        return Stall(rank=rank, step=standing.step, collective=furthest.collective, waited_s=waited_s)

    @property
    def limit_s(self) -> float:
        """How long the ranks may stand still now."""
        return max(SHORTEST_S, TIMES * self._longest_s) if self._has_stepped else START_S
