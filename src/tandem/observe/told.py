"""What an imported run says of itself and of its network, as numbers to reckon with."""

import math
from dataclasses import dataclass

import numpy as np

from tandem.observe.facts import fact_count, fact_number
from tandem.observe.ring import FP32_BYTES, ring_bytes
from tandem.observe.series.columns import Series
from tandem.observe.steady import steady_steps
from tandem.observe.stretches import host_count

__all__ = ["ToldLink", "told_link"]

FP16_BYTES = 2
CLOSE = 0.01
NEARLY = 0.8
"""A rate read off a display may be so much less than the true mean."""
JUST = 1.05
"""A link's true speed may be so much more than its name."""
HALVES = ("mixed", "fp16", "float16", "bf16", "half")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLink:
    """The arithmetic of an exchange that nobody measured; nan where something was not told."""

    parameters: int
    ranks: int
    hosts: int
    """0: not known."""
    step_s: float
    fp32_bytes: float
    """A step, in each direction of each host's link."""
    fp16_bytes: float
    is_mixed: bool
    """Whether gradients may have been sent as halves."""
    seen_bytes_per_s: float
    """On an interface, by its user."""
    link_bytes_per_s: float
    """As ordered, by its user."""
    utilisation: float

    @property
    def sizes(self) -> tuple[float, ...]:
        """The bytes a step that are possible, the most first."""
        return (self.fp32_bytes, self.fp16_bytes) if self.is_mixed else (self.fp32_bytes,)

    @property
    def least_bytes_per_s(self) -> float:
        """That must cross in each direction, for the fewest bytes to fit into the step."""
        return min(self.sizes) / self.step_s

    @property
    def is_seen_too_little(self) -> bool:
        """Whether the rate seen cannot have carried even the fewest bytes."""
        return self.seen_bytes_per_s < NEARLY * self.least_bytes_per_s

    @property
    def is_link_too_slow(self) -> bool:
        """Whether the link as told cannot have carried even the fewest bytes."""
        return JUST * self.link_bytes_per_s < self.least_bytes_per_s


def told_link(series: Series) -> ToldLink:
    """Put together what is known."""
    parameters, ranks = _parameters(series), _ranks(series)
    reckoned = ring_bytes(FP32_BYTES * parameters, ranks)
    told = fact_number(series, "gradient_bytes_per_step_per_link")
    # An importer may have reckoned it in the same way: then it tells nothing about the precision.
    is_told = not math.isnan(told) and abs(told - reckoned) > CLOSE * reckoned
    fp32 = told if is_told else reckoned
    steady = steady_steps(series)
    durations = series.steps.duration_s[steady if steady.any() else np.isfinite(series.steps.duration_s)]
    return ToldLink(
        parameters=parameters,
        ranks=ranks,
        hosts=host_count(series),
        step_s=float(np.median(durations)) if len(durations) else math.nan,
        fp32_bytes=fp32,
        fp16_bytes=fp32 * FP16_BYTES / FP32_BYTES,
        is_mixed=not is_told and _may_be_halves(series),
        seen_bytes_per_s=fact_number(series, "observed_nic_bytes_per_s"),
        link_bytes_per_s=fact_number(series, "observed_link_bits_per_s") / 8,
        utilisation=fact_number(series, "observed_gpu_utilisation"),
    )


def _parameters(series: Series) -> int:
    if series.started is not None and series.started.parameters > 0:
        return series.started.parameters
    return fact_count(series, "reported_parameters")


def _ranks(series: Series) -> int:
    if not math.isnan(fact_number(series, "gpus")):
        return fact_count(series, "gpus")
    return series.started.ranks if series.started is not None else 0


def _may_be_halves(series: Series) -> bool:
    facts = series.imported.facts if series.imported is not None else {}
    # Where it is told how gradients are summed, how the model computes says nothing.
    computed = (
        f"{facts.get('precision', '')} {series.started.precision if series.started is not None else ''}"
    )
    named = str(facts.get("gradient_precision") or computed).lower()
    return any(half in named for half in HALVES)
