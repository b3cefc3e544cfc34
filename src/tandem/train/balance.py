"""The arithmetic of shares: from the measured times of all ranks to the part of an update that each should get."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Self

from tandem.data.batches.uneven import EQUAL, Shares

__all__ = ["LONGEST_HISTORY", "Choice", "RankTimes", "best_shares", "choose_shares", "step_seconds"]

LEAST_SHARE = 0.05
"""The least part that a rank gets, of an equal part: with nothing to do, its speed could not be measured."""
LARGEST_CHANGE = 2.0
"""A decision multiplies or divides no share by more than this."""
SHORTEST_HISTORY, LONGEST_HISTORY = 2, 8
"""Windows that a decision may rest on."""
GAIN, GAIN_OF_ONE_WINDOW = 0.02, 0.10
"""New shares must shorten the step by this much, and by so much more the fewer windows say so."""
NEARLY_EQUAL = 0.02
"""If equal shares are so near to the best step time, they are taken."""
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTimes:
    """What a rank's steps are made of, as the median of a window or as a mean of such."""

    fixed_s: float
    """Seconds of a step that do not depend on its share: data, optimizer, other."""
    whole_s: float
    """Seconds of forward and backward that it would need for a whole update."""

    @property
    def is_usable(self) -> bool:
        """Whether the rank measured anything."""
        return isfinite(self.fixed_s) and isfinite(self.whole_s) and self.whole_s > 0

    @classmethod
    def mean(cls, windows: Sequence[Self]) -> Self:
        """Return the mean; `fsum` rounds alike on every version of Python, and ranks must agree to the bit."""
        count = len(windows)
        return cls(
            fixed_s=fsum(window.fixed_s for window in windows) / count,
            whole_s=fsum(window.whole_s for window in windows) / count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """New shares, and what they were chosen by."""

    shares: Shares
    """EQUAL where equal parts are as good as any."""
    times: tuple[RankTimes, ...]
    """Of each rank."""
    windows: int


def step_seconds(times: Sequence[RankTimes], shares: Sequence[float]) -> float:
    """Return the seconds until the slowest rank has computed, if ranks get these parts (which sum to 1)."""
    return max(rank.fixed_s + rank.whole_s * share for rank, share in zip(times, shares, strict=True))


def best_shares(times: Sequence[RankTimes]) -> tuple[float, ...]:
    """Return the parts of an update with which all ranks finish together, none below LEAST_SHARE of an equal part.

    If rank r takes f_r + w_r c_r seconds for a part w_r, all take T = (1 + sum f_r/c_r) / (sum 1/c_r). A rank that
    cannot do its least part in that time gets it all the same, and the others divide what is left.
    """
    least = LEAST_SHARE / len(times)
    free = list(range(len(times)))
    shares = [least] * len(times)
    while free:
        left = 1 - least * (len(times) - len(free))
        whole = fsum(1 / times[rank].whole_s for rank in free)
        finish_s = (left + fsum(times[rank].fixed_s / times[rank].whole_s for rank in free)) / whole
        wanted = {rank: (finish_s - times[rank].fixed_s) / times[rank].whole_s for rank in free}
        slow = [rank for rank in free if wanted[rank] < least]
        if not slow:
            for rank in free:
                shares[rank] = wanted[rank]
            break
        free = [rank for rank in free if rank not in slow]
    return tuple(shares)


def choose_shares(history: Sequence[Sequence[RankTimes]], shares: Shares) -> Choice | None:
    """Return new shares if the last windows agree that they are worth it; None to go on as it is.

    The newest windows are looked at first: a large change of speed shows in two of them, a small difference must be
    seen in more. Noise of 10 % from step to step in windows of 20 steps is four standard errors from any of the limits.
    """
    for windows in range(SHORTEST_HISTORY, min(len(history), LONGEST_HISTORY) + 1):
        newest = history[-windows:]
        times = tuple(RankTimes.mean(rank) for rank in zip(*newest, strict=True))
        best = best_shares(times)
        now = _normal(shares, len(times))
        if _gain(times, now, best) > GAIN + GAIN_OF_ONE_WINDOW / windows:
            return Choice(shares=_towards(best, now, times), times=times, windows=windows)
    return None


def _gain(times: Sequence[RankTimes], now: Sequence[float], then: Sequence[float]) -> float:
    """The part of the step time that other shares would save."""
    return 1 - step_seconds(times, then) / step_seconds(times, now)


def _towards(best: Sequence[float], now: Sequence[float], times: Sequence[RankTimes]) -> Shares:
    """The best shares, or as far on the way to them as no share changes too much."""
    equal = _normal(EQUAL, len(best))
    way = min(1.0, *(_reach(old, new) for old, new in zip(now, best, strict=True)))
    if way == 1.0 and _gain(times, equal, best) < NEARLY_EQUAL:
        return EQUAL
    return tuple(round(old + way * (new - old), _DIGITS) for old, new in zip(now, best, strict=True))


def _reach(old: float, new: float) -> float:
    """How much of the way from one share to another may be gone at once."""
    if new > old * LARGEST_CHANGE:
        return old * (LARGEST_CHANGE - 1) / (new - old)
    if new < old / LARGEST_CHANGE:
        return old * (1 - 1 / LARGEST_CHANGE) / (old - new)
    return 1.0


def _normal(shares: Shares, ranks: int) -> tuple[float, ...]:
    if not shares:
        return (1 / ranks,) * ranks
    total = fsum(shares)
    return tuple(share / total for share in shares)
