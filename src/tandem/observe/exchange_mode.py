"""The mode in which hosts exchanged gradients, and the bytes that it puts on a link."""

import math
from collections.abc import Sequence

import numpy as np

from tandem.observe.numbers import count, megabytes
from tandem.observe.ring import gradient_bytes, ring_bytes
from tandem.observe.series.columns import Series
from tandem.runlog.event import ExchangeChosen, ResidualsReset, ResidualsRestored

__all__ = [
    "chosen_modes",
    "codec_seconds",
    "describe_mode",
    "describe_residuals",
    "encoded_mode",
    "step_bytes",
]

_EXACT = "exact"


def chosen_modes(series: Series) -> Sequence[ExchangeChosen]:
    """Which modes were chosen, in order of time."""
    return [mark.event for mark in series.marks if isinstance(mark.event, ExchangeChosen)]


def encoded_mode(series: Series) -> str:
    """The mode of the last step that was logged; empty where its gradients were summed exactly."""
    steps = series.steps.step
    if not len(steps):
        return ""
    mode = _EXACT
    for chosen in chosen_modes(series):
        if chosen.step < steps[-1]:
            mode = chosen.mode if steps[-1] > chosen.exact_steps else _EXACT
    return "" if mode == _EXACT else mode


def step_bytes(series: Series, ranks: int) -> float:
    """Bytes in each direction of the busiest host's link, a mean step, as the modes of its steps send them."""
    ring = ring_bytes(gradient_bytes(series), ranks)
    steps = series.steps.step
    if not len(steps):
        return ring
    carried = np.full(len(steps), ring)
    for chosen in chosen_modes(series):
        carried[steps > chosen.step] = ring
        encoded = (steps > chosen.step) & (steps > chosen.exact_steps)
        carried[encoded] = _bytes_of(chosen, ring)
    return float(carried.mean())


def codec_seconds(series: Series) -> float:
    """Seconds a step of encoding and decoding, as they were measured when the mode was chosen; nan where not."""
    mode = encoded_mode(series)
    measured = [
        seconds
        for chosen in chosen_modes(series)
        for name, seconds in zip(chosen.modes, chosen.codec_s, strict=False)
        if name == mode and math.isfinite(seconds)
    ]
    return measured[-1] if measured else math.nan


def describe_mode(event: ExchangeChosen) -> str:
    """The mode in a sentence, with its bytes against those of an exact exchange."""
    sizes = dict(zip(event.modes, event.link_bytes, strict=False))
    text = f"hosts exchange gradients in mode {event.mode} ({event.reason})"
    if event.mode != _EXACT and {event.mode, _EXACT} <= sizes.keys():
        text += (
            f": {megabytes(sizes[event.mode])} a step on the fullest link, exact {megabytes(sizes[_EXACT])}"
        )
    return text


def describe_residuals(event: ResidualsRestored | ResidualsReset) -> str:
    """What became of residuals, in a sentence; empty where all go on as they were."""
    if isinstance(event, ResidualsReset):
        return (
            f"residuals of rank {', '.join(map(count, event.ranks))} were not finite, and {count(event.skipped)} steps "
            f"up to step {count(event.step)} were skipped: all residuals are zero now"
        )
    if not event.is_used:
        return "residuals of encoded gradients are not used: gradients are exchanged exactly from here on"
    if event.found < event.expected:
        return (
            f"{event.expected - event.found} of {event.expected} residuals of encoded gradients were not found: they "
            "count as zero"
        )
    return "" if event.is_same_layout else "residuals of encoded gradients were shared out among other hosts"


def _bytes_of(chosen: ExchangeChosen, ring: float) -> float:
    sizes = dict(zip(chosen.modes, chosen.link_bytes, strict=False))
    return ring if chosen.mode == _EXACT else sizes.get(chosen.mode, ring)
