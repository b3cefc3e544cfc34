"""The optim section: how gradients become new weights."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tandem.config.section import Section

__all__ = ["OptimSection"]

_TRANSFORMER_FACTOR = 2.0
_SMALLEST_FACTOR = 0.01
_LARGEST_PEAK = 1.0

Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimSection(Section):
    """How gradients become new weights: AdamW, its learning rate and what is done to gradients before."""

    algorithm: Literal["adamw", "muon"] = "adamw"
    """What turns gradients into steps: `muon` makes those of the layers' matrices orthogonal; the rest is AdamW's."""

    schedule: Literal["transformer", "inverse_sqrt", "cosine", "linear", "constant"] = "inverse_sqrt"
    """How the learning rate goes on after warm-up; `transformer` is the first paper's, scaled by model width."""

    learning_rate: Annotated[float, Field(gt=0, le=100)] = 7e-4
    """The highest learning rate; for schedule `transformer` the factor of its formula, 2.0 if not given."""

    warmup_steps: Annotated[int, Field(ge=0)] = 4000
    """Steps over which the learning rate rises in a straight line."""

    cooldown_steps: Annotated[int, Field(ge=0)] = 0
    """Last steps before train.max_steps, over which the learning rate falls to zero."""

    beta1: Decay = 0.9
    """Adam's memory of gradients."""

    beta2: Decay = 0.98
    """Adam's memory of squared gradients."""

    epsilon: Annotated[float, Field(gt=0, lt=1)] = 1e-9
    """Added to Adam's divisor, so that it is never zero."""

    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of each weight taken off at every step, times the learning rate."""

    clip_norm: Annotated[float, Field(ge=0)] = 1.0
    """Longest gradient, over all weights; a longer one is scaled down to it, and 0 leaves all as they are."""

    ema_decay: Decay = 0.0
    """Keep of each step in the running average of weights that is evaluated and saved, such as 0.999; 0 is off."""

    @model_validator(mode="before")
    @classmethod
    def _factor_for_transformer(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("schedule") == "transformer":
            return {"learning_rate": _TRANSFORMER_FACTOR, **values}
        return values

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield learning rates and warm-ups that the schedule cannot use."""
        rate = self.learning_rate
        if self.schedule == "transformer" and rate < _SMALLEST_FACTOR:
            sentence = (
                f"is {rate:g}, but schedule transformer wants a factor such as {_TRANSFORMER_FACTOR}; "
                "take it out, or choose another schedule"
            )
            yield "learning_rate", sentence
        if self.schedule != "transformer" and rate >= _LARGEST_PEAK:
            sentence = (
                f"is {rate:g}, but schedule {self.schedule} wants the highest rate itself, such as 7e-4; "
                "take it out, or make the schedule transformer"
            )
            yield "learning_rate", sentence
        if self.schedule in {"transformer", "inverse_sqrt"} and not self.warmup_steps:
            yield (
                "warmup_steps",
                f"is 0, but schedule {self.schedule} starts from where warm-up ends; make it 1 or more",
            )
