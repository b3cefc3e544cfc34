"""The mode in which the gradients of each step were exchanged, as the log tells it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tandem.observe.series.columns import Series
from tandem.runlog.event import ExchangeChosen

__all__ = ["EXACT", "chosen_modes", "is_encoded", "modes_of"]

EXACT = "exact"


def chosen_modes(series: Series) -> Sequence[ExchangeChosen]:
    """Which modes were chosen, in order of time."""
    return [mark.event for mark in series.marks if isinstance(mark.event, ExchangeChosen)]


def is_encoded(chosen: ExchangeChosen, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the choice had these steps encoded, if no later one took its place."""
    return np.asarray((chosen.mode != EXACT) & (steps > max(chosen.step, chosen.exact_steps)))


def modes_of(series: Series, steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for the mode of each step: 0 where gradients were summed exactly."""
    chosen = chosen_modes(series)
    names = sorted({choice.mode for choice in chosen} - {EXACT})
    numbers = np.zeros(len(steps), np.int64)
    for choice in chosen:
        number = (
            np.where(is_encoded(choice, steps), names.index(choice.mode) + 1, 0)
            if choice.mode in names
            else 0
        )
        numbers = np.where(steps > choice.step, number, numbers)
    return numbers
