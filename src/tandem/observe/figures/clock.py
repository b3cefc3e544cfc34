"""The time axis that all timelines share, and the marks on it: evaluations, checkpoints, restarts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tandem.artefact import JsonValue
from tandem.observe.figures.curve import Column, Trace, axis, values
from tandem.observe.figures.look import GREEN, PURPLE, TARGET
from tandem.observe.series.columns import Series
from tandem.runlog.event import EvaluationStarted, WorkersLost

__all__ = ["MARK", "Clock", "clock_of", "marks"]

MARK = "mark"
"""Says of a trace that it is no measurement."""

MINUTES_FROM_S, HOURS_FROM_S = 600.0, 7_200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The unit in which times of a run are shown."""

    unit: str
    seconds: float
    end_s: float

    def at(self, time_s: Column) -> Column:
        """Times in this unit."""
        return np.asarray(time_s, np.float64) / self.seconds

    def axis(self, **more: JsonValue) -> dict[str, JsonValue]:
        """The axis, the same in every timeline of a run."""
        end = float(f"{max(self.end_s, 1e-3) / self.seconds:.6g}")
        return axis(f"time since the run began, {self.unit}", range=[0, end], **more)


def clock_of(series: Series) -> Clock:
    """Seconds, minutes or hours, whichever suits the length of the run."""
    end = series.end_s
    if end < MINUTES_FROM_S:
        return Clock(unit="s", seconds=1.0, end_s=end)
    if end < HOURS_FROM_S:
        return Clock(unit="min", seconds=60.0, end_s=end)
    return Clock(unit="h", seconds=3600.0, end_s=end)


def marks(series: Series, *, yaxis: str) -> list[Trace]:
    """What happened beside the steps, as symbols in a strip of its own; kinds that did not happen are left out."""
    clock = clock_of(series)
    kinds = (
        ("evaluation", "diamond", GREEN, 3.0, _evaluations(series)),
        (
            "checkpoint",
            "triangle-down",
            PURPLE,
            2.0,
            [(each.time_s, f"checkpoint of step {each.step:,}") for each in series.checkpoints],
        ),
        ("restart", "x", TARGET, 1.0, _restarts(series)),
    )
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": values(clock.at(np.array([time for time, _ in found])), 7),
            "y": [height] * len(found),
            "yaxis": yaxis,
            "marker": {"symbol": symbol, "color": colour, "size": 8},
            "cliponaxis": False,  # what happened at the end is at the edge
            "meta": MARK,
            "hoverinfo": "text",
            "hovertext": [text for _, text in found],
        }
        for name, symbol, colour, height, found in kinds
        if found
    ]


def _evaluations(series: Series) -> list[tuple[float, str]]:
    begun = [each for each in series.marks if isinstance(each.event, EvaluationStarted)]
    if begun:
        return [(each.time_s, f"evaluation after step {_step(each.event):,}") for each in begun]
    return [(each.time_s, f"evaluation after step {each.step:,}") for each in series.evaluations]


def _step(event: object) -> int:
    return int(getattr(event, "step", 0))


def _restarts(series: Series) -> list[tuple[float, str]]:
    lost = [(each.time_s, "workers lost") for each in series.marks if isinstance(each.event, WorkersLost)]
    again: Iterable[tuple[float, str]] = (
        (time, f"training went on from step {start.step:,}") for time, start in series.starts[1:]
    )
    return sorted([*lost, *again])
