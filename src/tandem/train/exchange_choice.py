"""Which mode of exchanging gradients a run needs, by what was measured in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tandem.estimate.exchange import MOST_EXPOSED, exposed_seconds
from tandem.parallel.exchange import MODES, ExchangeMode

__all__ = ["MARGIN", "Prediction", "Probe", "Trial", "choose_mode", "is_unsure", "later_half", "predict"]

MARGIN = 0.05
"""Share of a step by which the exact exchange must cost more than it may before a less exact one is considered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A step done without and with exact exchange: seconds of each rank, in the order of ranks."""

    compute_s: Sequence[float]
    """Forward and backward without exchange."""
    synchronised_s: Sequence[float]
    """The same with exchange, until its gradients were there."""
    wait_s: Sequence[float]
    """The last part of that: the wait for gradients after backward."""
    usual_wait_s: float = 0.0
    """The least wait of any rank in the steps before: a shaped link saves up while a step is done without exchange."""

    @property
    def slowest_s(self) -> float:
        """Seconds of the slowest rank without exchange."""
        return max(self.compute_s)

    @property
    def exposed_s(self) -> float:
        """Seconds that the exchange cost.

        Only the last rank to arrive waits for the exchange alone, and an exchange that takes the processor slows every
        rank: what single ranks take longer than without exchange is their own lateness.
        """
        slowed_s = min(
            whole - wait - alone
            for whole, wait, alone in zip(self.synchronised_s, self.wait_s, self.compute_s, strict=True)
        )
        longer_s = max(self.synchronised_s) - self.slowest_s
        return max(self.usual_wait_s, min(longer_s, min(self.wait_s) + max(0.0, slowed_s)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the exchange costs a step: measured where it is exact, else predicted."""

    compute_s: float
    """Forward and backward of the slowest rank without exchange."""
    exposed_s: Mapping[ExchangeMode, float]
    spread_s: float
    """How far apart the probes were: a smaller gain may be none."""

    def share(self, mode: ExchangeMode) -> float:
        """The part of a step that is the exchange in this mode."""
        step_s = self.compute_s + self.exposed_s[mode]
        return self.exposed_s[mode] / step_s if step_s else 0.0


def later_half(seconds: Sequence[float]) -> float:
    """The median of what came in the second half: the first ones may have passed in the burst of a shaped link."""
    return median(seconds[len(seconds) // 2 :])


def predict(trial: Trial, probes: Sequence[Probe]) -> Prediction:
    """Predict what each mode costs from what the exact one cost in the probes.

    What of the exact exchange hid behind computing tells for how long computing can hide one. An exact exchange that
    costs a step more than its trial took was tried on a faster link than steps have: so were the other modes.
    """
    exposed = [probe.exposed_s for probe in probes]
    exact_s = median(exposed)
    tried_s = trial.exchange_s["exact"]
    slower = max(1.0, exact_s / tried_s) if tried_s else 1.0
    hiding_s = max(0.0, tried_s - exact_s)
    costs: dict[ExchangeMode, float] = {}
    for mode in MODES:
        codec_s = trial.codec_s[mode]
        transfer_s = trial.exchange_s[mode] + (slower - 1) * max(0.0, trial.exchange_s[mode] - codec_s)
        costs[mode] = exposed_seconds(transfer_s, hiding_s=hiding_s, tail_share=trial.tail_share)
        if trial.shares_processor:
            costs[mode] += codec_s
    return Prediction(
        compute_s=median(probe.slowest_s for probe in probes),
        exposed_s=costs | {"exact": exact_s},
        spread_s=max(exposed) - min(exposed),
    )


def choose_mode(predicted: Prediction, trial: Trial) -> ExchangeMode:
    """The exact mode unless it surely costs too much; then the most exact one that does not, or the fastest.

    A less exact mode must gain more than probes differ, and must have been the faster one when it was tried.
    """
    chosen: ExchangeMode = "exact"
    if predicted.share(chosen) <= MOST_EXPOSED + MARGIN:
        return chosen
    for mode in MODES[1:]:
        gain_s = predicted.exposed_s[chosen] - predicted.exposed_s[mode]
        if gain_s > predicted.spread_s and trial.exchange_s[mode] < trial.exchange_s[chosen]:
            chosen = mode
        if predicted.share(chosen) <= MOST_EXPOSED:
            break
    return chosen


def is_unsure(predicted: Prediction, trial: Trial) -> bool:
    """Whether probes that differ less might change the choice, as they do once a burst is spent."""
    return choose_mode(predicted, trial) != choose_mode(replace(predicted, spread_s=0.0), trial)
