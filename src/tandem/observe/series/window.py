"""A stretch of a series, so that a figure of it is finer."""

import math
from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np

from tandem.observe.series.columns import HostSamples, Probes, RankSteps, Series, Steps

__all__ = ["window"]

_Stretch: TypeAlias = tuple[float, float]


def window(series: Series, *, steps: _Stretch | None = None, times: _Stretch | None = None) -> Series:
    """The same run with only the steps, evaluations, probes and samples of a stretch, in steps or in seconds.

    One more of each is there on both sides, so that lines reach the edges. All else stays, and columns are views.
    """
    if steps is not None and times is None:
        rows = _reach(series.steps.step, steps)
        evaluations = _reach([each.step for each in series.evaluations], steps)
        times = _span(series.steps.time_s, rows)
    elif times is not None and steps is None:
        rows = _reach(series.steps.time_s, times)
        evaluations = _reach([each.time_s for each in series.evaluations], times)
        steps = _span(series.steps.step, rows)
    else:
        raise ValueError("a stretch is given in steps or in seconds")
    return replace(
        series,
        steps=Steps(**_cut(series.steps, rows)),
        ranks=_cut_ranks(series.ranks, rows),
        probes=Probes(**_cut(series.probes, _reach(series.probes.step, steps))),
        evaluations=series.evaluations[evaluations],
        samples={host: _cut_samples(held, times) for host, held in series.samples.items()},
    )


def _reach(values: Any, stretch: _Stretch) -> slice:
    """The places of rising values that lie in a stretch, with all that are like the next ones on both sides."""
    if not len(values):
        return slice(0, 0)
    low, high = sorted(stretch)
    first = max(0, int(np.searchsorted(values, low)) - 1)
    last = min(len(values) - 1, int(np.searchsorted(values, high, side="right")))
    return slice(
        int(np.searchsorted(values, values[first])), int(np.searchsorted(values, values[last], side="right"))
    )


def _span(values: Any, places: slice) -> _Stretch:
    """From the first to the last place; what begins or ends with the run has no edge there."""
    low = float(values[places.start]) if places.start else -math.inf
    return low, float(values[places.stop - 1]) if places.stop < len(values) else math.inf


def _cut(columns: Steps | Probes | HostSamples, places: slice) -> dict[str, Any]:
    """All columns, which go along their last axis."""
    held = {each.name: getattr(columns, each.name) for each in fields(columns)}
    return {
        name: value[..., places] if isinstance(value, np.ndarray) else value for name, value in held.items()
    }


def _cut_ranks(ranks: RankSteps, places: slice) -> RankSteps:
    return replace(
        ranks,
        duration_s=ranks.duration_s[:, places],
        phases={name: held[:, places] for name, held in ranks.phases.items()},
        sent_bytes=ranks.sent_bytes[:, places],
    )


def _cut_samples(samples: HostSamples, times: _Stretch) -> HostSamples:
    return HostSamples(**_cut(samples, _reach(samples.time_s, times)))
