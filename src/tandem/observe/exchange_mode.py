"""The mode in which hosts exchanged gradients, and the bytes that it puts on a link."""

import math
from dataclasses import dataclass

import numpy as np

from tandem.observe.mode_of_steps import EXACT, chosen_modes, is_encoded, modes_of
from tandem.observe.numbers import count, megabytes, percent
from tandem.observe.probing import costs_of_probes
from tandem.observe.ring import gradient_bytes, ring_bytes
from tandem.observe.series.columns import Series
from tandem.runlog.event import ExchangeChecked, ExchangeChosen, ResidualsReset, ResidualsRestored

__all__ = [
    "ModeCost",
    "codec_seconds",
    "cost_in_mode",
    "cost_of_exact",
    "describe_check",
    "describe_mode",
    "describe_residuals",
    "encoded_mode",
    "mode_bytes",
    "step_bytes",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeCost:
    """Seconds that an exchange adds to a step."""

    seconds: float
    origin: str
    """How that is known."""


def encoded_mode(series: Series) -> str:
    """The mode of the last step that was logged; empty where its gradients were summed exactly."""
    steps = series.steps.step
    chosen = _last(series)
    return chosen.mode if chosen is not None and is_encoded(chosen, steps[-1:]).all() else ""


def mode_bytes(series: Series, ranks: int) -> float:
    """Bytes in each direction of the busiest host's link in a step of the last mode."""
    ring = ring_bytes(gradient_bytes(series), ranks)
    chosen = _last(series)
    return ring if chosen is None else _bytes_of(chosen, ring)


def cost_of_exact(series: Series) -> ModeCost | None:
    """What an exact exchange cost the run before its gradients were encoded; None where that was not measured."""
    for chosen in reversed(chosen_modes(series)):
        exposed_s = dict(zip(chosen.modes, chosen.exposed_s, strict=False)).get(EXACT, math.nan)
        if math.isfinite(exposed_s):
            return ModeCost(seconds=exposed_s, origin="the median of the probes by which the mode was chosen")
    steps, cost = costs_of_probes(series.probes)
    is_exact = modes_of(series, steps) == 0
    if not is_exact.any():
        return None
    return ModeCost(seconds=float(np.median(cost[is_exact])), origin=_probes(int(is_exact.sum())))


def cost_in_mode(series: Series) -> ModeCost | None:
    """What the exchange costs in the last mode; None where no step was exchanged in it, or none was timed."""
    chosen = _last(series)
    if chosen is None:
        return None
    steps, cost = costs_of_probes(series.probes)
    is_probed = is_encoded(chosen, steps)
    if is_probed.any():
        return ModeCost(seconds=float(np.median(cost[is_probed])), origin=_probes(int(is_probed.sum())))
    waited = series.ranks.phases.get("exchange")
    if waited is None:
        return None
    least = np.fmin.reduce(waited, axis=0)[is_encoded(chosen, series.steps.step)]
    if not np.isfinite(least).any():
        return None
    origin = "no probe was made in this mode: the least wait of any rank, a lower bound"
    return ModeCost(seconds=float(np.nanmean(least)), origin=origin)


def step_bytes(series: Series, ranks: int) -> float:
    """Bytes in each direction of the busiest host's link, a mean step, as the modes of its steps send them."""
    ring = ring_bytes(gradient_bytes(series), ranks)
    steps = series.steps.step
    if not len(steps):
        return ring
    carried = np.full(len(steps), ring)
    for chosen in chosen_modes(series):
        carried[steps > chosen.step] = ring
        carried[is_encoded(chosen, steps)] = _bytes_of(chosen, ring)
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
    if event.mode != EXACT and {event.mode, EXACT} <= sizes.keys():
        text += (
            f": {megabytes(sizes[event.mode])} a step on the fullest link, exact {megabytes(sizes[EXACT])}"
        )
    return text


def describe_check(event: ExchangeChecked) -> str:
    """How far encoded gradients lay from the exact ones, in a sentence."""
    text = (
        f"gradients of mode {event.mode} lie {percent(event.error)} from the exact ones at step {count(event.step)}; "
        f"{percent(event.owed)} are left for later"
    )
    if event.is_good:
        return text
    return (
        f"{text}, {percent(event.lost)} of bucket {event.bucket + 1} are lost: a more exact mode takes over"
    )


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


def _last(series: Series) -> ExchangeChosen | None:
    """The choice that the last logged step was made by."""
    steps = series.steps.step
    made = [chosen for chosen in chosen_modes(series) if len(steps) and chosen.step < steps[-1]]
    return made[-1] if made else None


def _probes(count: int) -> str:
    steps = "1 step" if count == 1 else f"the median of {count} steps"
    return f"{steps} done with exchange and without"


def _bytes_of(chosen: ExchangeChosen, ring: float) -> float:
    sizes = dict(zip(chosen.modes, chosen.link_bytes, strict=False))
    return ring if chosen.mode == EXACT else sizes.get(chosen.mode, ring)
