"""Which mode of exchanging gradients a run needs, by what was measured in it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.parallel.exchange import MODES, ExchangeMode

__all__ = ["Trial", "choose_mode", "predict_exposed"]

MOST_EXPOSED = 0.1
"""Share of a step that an exchange may cost before a less exact one is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Exchanges that were tried with nothing beside them, on the slowest rank."""

    exchange_s: Mapping[ExchangeMode, float]
    codec_s: Mapping[ExchangeMode, float]
    """Seconds of that in which a rank encoded and decoded, over its threads."""
    tail_share: float
    """Share of an exchange that is in the last bucket, which is complete when backward ends."""
    shares_processor: bool
    """Whether encoding takes the processor away from the model, as it does without a GPU."""


def predict_exposed(trial: Trial, *, synchronised_s: float, compute_s: float) -> dict[ExchangeMode, float]:
    """Seconds of a step that each mode's exchange will cost.

    What of the exact exchange hid behind computing tells for how long computing can hide one; the last bucket never
    hides.
    """
    exact_s = max(0.0, synchronised_s - compute_s)
    hiding_s = max(0.0, trial.exchange_s["exact"] - exact_s)
    exposed = {}
    for mode in MODES:
        transfer_s = trial.exchange_s[mode]
        exposed[mode] = max(transfer_s - hiding_s, trial.tail_share * transfer_s)
        if trial.shares_processor:
            exposed[mode] += trial.codec_s[mode]
    return exposed | {"exact": exact_s}


def choose_mode(exposed_s: Mapping[ExchangeMode, float], *, compute_s: float) -> ExchangeMode:
    """The most exact mode whose exchange hardly shows in the step; where none is such, the fastest."""
    for mode in MODES:
        if exposed_s[mode] <= MOST_EXPOSED * (compute_s + exposed_s[mode]):
            return mode
    return min(MODES, key=lambda mode: exposed_s[mode] if math.isfinite(exposed_s[mode]) else math.inf)
