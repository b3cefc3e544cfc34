"""What the outside asks of a run: signals on any rank, and the clock of rank 0.

Each is a number that travels with the gradients, so that every rank hears it at the same step.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from types import FrameType
from typing import Self

from tandem.config import Recipe

__all__ = ["Asked", "Clockwork", "Signals"]

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What some rank asked for."""

    stop: bool = False
    evaluate: bool = False
    save: bool = False
    out_of_time: bool = False

    def numbers(self) -> tuple[float, ...]:
        """One number for each, to be summed over ranks."""
        return tuple(float(getattr(self, each.name)) for each in fields(self))

    def __or__(self, other: Self) -> Self:
        """What was asked for by either."""
        return type(self).from_numbers(
            [max(pair) for pair in zip(self.numbers(), other.numbers(), strict=True)]
        )

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Self:
        """From the sums: whatever any rank asked for."""
        names = (each.name for each in fields(cls))
        return cls(**{name: number > 0 for name, number in zip(names, numbers, strict=True)})


class Signals:
    """SIGTERM and SIGINT as a wish to stop."""

    def __init__(self, on_first: Callable[[str], None]) -> None:
        self.name = ""
        self._on_first = on_first

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Catch them inside the block."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._catch) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        if not self.name:
            self.name = signal.Signals(number).name
            self._on_first(self.name)


class Clockwork:
    """What is due by the clock, which is rank 0's, since clocks differ."""

    def __init__(
        self, recipe: Recipe, *, trained_s: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._begun_s = now() - trained_s
        self._evaluate_s = _seconds(recipe.evaluate.every_minutes)
        self._save_s = _seconds(recipe.checkpoint.every_minutes)
        self._limit_s = _seconds(recipe.train.max_minutes)
        self._evaluated_s = self._saved_s = now()

    @property
    def elapsed_s(self) -> float:
        """Since the run began, over all restarts."""
        return self._now() - self._begun_s

    def evaluated(self) -> None:
        """An evaluation has just ended; it comes with a checkpoint."""
        self._evaluated_s = self._saved_s = self._now()

    def saved(self) -> None:
        """A checkpoint has just been taken."""
        self._saved_s = self._now()

    def asks(self, *, stop: bool, by_clock: bool) -> Asked:
        """What a rank asks for now; only one of them may go by its clock."""
        if not by_clock:
            return Asked(stop=stop)
        now = self._now()
        return Asked(
            stop=stop,
            evaluate=now - self._evaluated_s >= self._evaluate_s,
            save=now - self._saved_s >= self._save_s,
            out_of_time=self.elapsed_s >= self._limit_s,
        )


def _seconds(minutes: float | None) -> float:
    return float("inf") if minutes is None else minutes * MINUTE_S
