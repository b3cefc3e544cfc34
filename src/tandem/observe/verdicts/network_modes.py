"""What a mode of exchanging gradients did for a run, and what another one, or a larger update, would do."""

import math
from dataclasses import dataclass
from typing import Self

from tandem.estimate.exchange import MOST_EXPOSED, host_bytes
from tandem.estimate.larger_update import LargerUpdate
from tandem.observe.exchange import Exposure
from tandem.observe.exchange_mode import (
    ModeCost,
    cost_in_mode,
    cost_of_exact,
    encoded_mode,
    mode_bytes,
)
from tandem.observe.mode_of_steps import chosen_modes
from tandem.observe.ring import FP32_BYTES, gradient_bytes, larger_step, ring_bytes
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.words import megabytes_of, seconds

__all__ = ["Modes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """The mode in force, and what is known of others."""

    mode: str
    """Of the last step."""
    can_change: bool
    """Whether it was ordered and sends more than `packed`, so that `auto` may find a better one."""
    sent_bytes: float
    """By the busiest host in a step of this mode."""
    exact_bytes: float
    parameters: float
    update_tokens: int
    before: ModeCost | None
    after: ModeCost | None

    @classmethod
    def of(cls, series: Series) -> Self:
        """The modes of a run."""
        mode, chosen = encoded_mode(series) or "exact", chosen_modes(series)
        started = series.started
        ranks = started.ranks if started is not None else series.ranks.ranks
        gradients = gradient_bytes(series)
        return cls(
            mode=mode,
            # All other reasons, but for `one host`, mean that auto chooses or has chosen.
            can_change=not chosen or (chosen[-1].reason == "ordered" and chosen[-1].mode != "packed"),
            sent_bytes=mode_bytes(series, ranks),
            exact_bytes=ring_bytes(gradients, ranks),
            parameters=gradients / FP32_BYTES,
            update_tokens=started.target_tokens_per_update if started is not None else 0,
            before=cost_of_exact(series),
            after=cost_in_mode(series),
        )

    def answer(self) -> str:
        """What the mode sent and saved, and what its exchange costs beside an exact one; empty for exact runs."""
        if self.mode == "exact":
            return ""
        text = (
            f" Gradients go in mode {self.mode}: {megabytes_of(self.sent_bytes)} a step instead of "
            f"{megabytes_of(self.exact_bytes)}"
        )
        if self.after is None:
            return f"{text}."
        text += f", which cost {seconds(max(0.0, self.after.seconds))} of it"
        if self.before is None:
            return f"{text}; what an exact exchange would cost was not measured."
        return f"{text}; an exact exchange cost {seconds(max(0.0, self.before.seconds))}."

    def advice(self, exposure: Exposure, *, transfer_s: float) -> str:
        """Another mode, where there is one to try, and a larger update, where no mode helps enough."""
        text, left_s = "", exposure.network_s
        packed = host_bytes("packed", self.parameters, hosts=exposure.hosts, ranks=exposure.ranks)
        if self.can_change and 0 < packed < self.sent_bytes:
            # Without a known speed nothing is taken to hide behind computing, as for other links.
            whole_s = max(left_s, transfer_s) if math.isfinite(transfer_s) else left_s
            left_s -= min(left_s, whole_s * (1 - packed / self.sent_bytes))
            step_s = exposure.step_s - exposure.network_s + left_s
            text = (
                f" exchange.mode=auto tries modes that send less: the smallest, packed, sends {megabytes_of(packed)} a "
                f"step instead of {megabytes_of(self.sent_bytes)}, which makes a step about {seconds(step_s)}, longer "
                "where encoding takes the processor. Compare the losses: gradients are rounded then."
            )
        if left_s <= MOST_EXPOSED * (exposure.step_s - exposure.network_s + left_s):
            return text
        larger = LargerUpdate.choose(lambda times: larger_step(exposure, times), tokens=self.update_tokens)
        return f"{text} {larger}"
