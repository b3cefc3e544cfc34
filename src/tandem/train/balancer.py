"""Measures what this rank's steps are made of, tells the others, and decides on shares as they all do."""

from collections import deque
from collections.abc import Mapping, Sequence
from math import nan
from statistics import median

from tandem.data.batches.uneven import ShareSchedule
from tandem.parallel.world import World
from tandem.runlog.event import SharesChanged
from tandem.runlog.writer import RunLog
from tandem.train.balance import LONGEST_HISTORY, RankTimes, choose_shares

__all__ = ["AHEAD_STEPS", "NUMBERS_A_RANK", "WINDOW_STEPS", "Balancer"]

NUMBERS_A_RANK = 2
"""What each rank tells: its fixed seconds, and those of a whole update."""
WINDOW_STEPS = 20
"""Ranks tell of their steps at every multiple of this."""
AHEAD_STEPS = 8
"""New shares hold so many steps after ranks told of theirs: more than are read late and built ahead together."""
_FEWEST_STEPS = 8
"""Fewer measured steps make no median worth telling."""


class Balancer:
    """Gives ranks shares by their speed; every decision is made alike on every rank, from the same numbers.

    A rank's numbers travel with the gradients of the steps that `report` fills them in for, and are heard by all in the
    result of that step.
    """

    def __init__(
        self, schedule: ShareSchedule, *, world: World, update_target_tokens: float, log: RunLog
    ) -> None:
        """`update_target_tokens` is their mean number in an update; the log of one rank is enough."""
        self._schedule, self._log = schedule, log
        self._rank, self._ranks = world.rank, world.size
        self._update_target_tokens = update_target_tokens
        self._own: list[RankTimes] = []
        self._history: deque[tuple[RankTimes, ...]] = deque(maxlen=LONGEST_HISTORY)
        self._valid_from = 0

    def announce(self, step: int) -> None:
        """Log shares that a checkpoint brought, before the first step."""
        if self._schedule.latest:
            first_step = max(step + 1, self._schedule.latest_from)
            self._tell(step, first_step=first_step, times=(), windows=0)

    def note(self, step: int, phases: Mapping[str, float], *, share: float) -> None:
        """Take what a step of this rank was made of, and its part of the update."""
        computing_s = phases.get("forward", 0.0) + phases.get("backward", 0.0)
        if step < self._valid_from or share <= 0 or computing_s <= 0:
            return
        fixed_s = sum(phases.get(name, 0.0) for name in ("data", "optimizer", "other"))
        self._own.append(RankTimes(fixed_s=fixed_s, whole_s=computing_s / share))

    def report(self, step: int) -> dict[int, float]:
        """Return the numbers to tell in this step, by their place among those of all ranks; mostly none."""
        if step % WINDOW_STEPS:
            return {}
        own, self._own = self._own, []
        if len(own) < _FEWEST_STEPS:
            return {}
        first = self._rank * NUMBERS_A_RANK
        return {
            first: median(times.fixed_s for times in own),
            first + 1: median(times.whole_s for times in own),
        }

    def hear(self, step: int, numbers: Sequence[float]) -> None:
        """Take the numbers of all ranks in the result of a step, and decide."""
        if step % WINDOW_STEPS:
            return
        times = tuple(
            RankTimes(fixed_s=fixed_s, whole_s=whole_s)
            for fixed_s, whole_s in zip(numbers[::2], numbers[1::2], strict=True)
        )
        if len(times) != self._ranks or not all(rank.is_usable for rank in times):
            return
        self._history.append(times)
        choice = choose_shares(tuple(self._history), self._schedule.latest)
        if choice is None:
            return
        # What was measured under the old shares does not count for the new ones.
        self._valid_from = step + AHEAD_STEPS
        self._own.clear()
        self._history.clear()
        if choice.shares != self._schedule.latest:
            self._schedule.change(choice.shares, first_step=self._valid_from)
            self._tell(step, first_step=self._valid_from, times=choice.times, windows=choice.windows)

    def _tell(self, step: int, *, first_step: int, times: Sequence[RankTimes], windows: int) -> None:
        latest = self._schedule.latest or (1.0,) * self._ranks
        unknown = (nan,) * self._ranks
        speeds = tuple(self._update_target_tokens / rank.whole_s for rank in times)
        self._log.log(
            SharesChanged(
                step=step,
                first_step=first_step,
                shares=tuple(share / sum(latest) for share in latest),
                tokens_per_s=speeds or unknown,
                fixed_s=tuple(rank.fixed_s for rank in times) or unknown,
                window_steps=windows * WINDOW_STEPS,
            )
        )
