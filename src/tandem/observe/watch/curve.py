"""A curve over the steps of a run of any length, in bounded memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tandem.observe.series.columns import Counts, Numbers

__all__ = ["StepCurve"]

LIMIT = 512
"""More points than a terminal has columns."""


@dataclass(slots=True)
class _Point:
    first_step: int
    total: float
    weight: float


class StepCurve:
    """Weighted means over stretches of steps, which grow longer as the run does."""

    def __init__(self) -> None:
        self._points: list[_Point] = []
        self._stride = 1

    def add(self, step: int, value: float, *, weight: float) -> None:
        """Take the value of the next step; one that is not finite has no place."""
        if not math.isfinite(value):
            return
        last = self._points[-1] if self._points else None
        if last is not None and last.first_step <= step < last.first_step + self._stride:
            last.total += value * weight
            last.weight += weight
            return
        self._points.append(_Point(step, value * weight, weight))
        if len(self._points) > LIMIT:
            self._thin()

    def extend(self, steps: Counts, values: Numbers, *, weights: Counts | Numbers) -> None:
        """Take the values of many steps in order: what adding them one by one would give, but for rounding."""
        known = np.isfinite(values)
        steps, weights, totals = steps[known], weights[known], (values * weights)[known]
        row = 0
        while row < len(steps):
            last = self._points[-1] if self._points else None
            if last is None or not last.first_step <= steps[row] < last.first_step + self._stride:
                last = _Point(int(steps[row]), 0.0, 0.0)
                self._points.append(last)
            stop = int(np.searchsorted(steps, last.first_step + self._stride))
            last.total += float(totals[row:stop].sum())
            last.weight += float(weights[row:stop].sum())
            row = stop
            if len(self._points) > LIMIT:
                self._thin()

    def cut(self, step: int) -> None:
        """Forget what came after this step."""
        self._points = [point for point in self._points if point.first_step <= step]

    def values(self, columns: int) -> list[float]:
        """The curve at so many evenly spaced places, or fewer where there are fewer points."""
        columns = min(columns, len(self._points))
        if columns < 1:
            return []
        first, last = self._points[0].first_step, self._points[-1].first_step
        groups: list[list[_Point]] = [[] for _ in range(columns)]
        for point in self._points:
            groups[(point.first_step - first) * columns // (last - first + 1)].append(point)
        # A stretch without steps, as a log with missing lines has, is bridged.
        return [_mean(group) for group in groups if group]

    def _thin(self) -> None:
        self._stride *= 2
        halves = zip(self._points[::2], [*self._points[1::2], None], strict=False)
        self._points = [first if second is None else _merged(first, second) for first, second in halves]


def _merged(first: _Point, second: _Point) -> _Point:
    return _Point(first.first_step, first.total + second.total, first.weight + second.weight)


def _mean(points: Sequence[_Point]) -> float:
    return sum(point.total for point in points) / sum(point.weight for point in points)
