"""Events of an imported run: what another tool does not say is 0, empty or nan in them."""

import math
from collections.abc import Mapping

from tandem import __version__
from tandem.artefact import JsonValue
from tandem.observe.visible import visible
from tandem.runlog.event import RunStarted, StepFinished, TrainingStarted

__all__ = ["formula", "integer", "plain_run", "plain_start", "plain_step", "text"]


def integer(facts: Mapping[str, JsonValue], name: str) -> int:
    """A whole number among the facts; 0 where it is not told."""
    value = facts.get(name)
    return value if type(value) is int else 0


def text(facts: Mapping[str, JsonValue], name: str) -> str:
    """A text among the facts; empty where it is not told."""
    value = facts.get(name)
    return value if isinstance(value, str) else ""


def formula(schedule: JsonValue) -> str:
    """The learning rate as a sentence, as Tandem's own runs have it; empty where the policy is not known."""
    if not isinstance(schedule, Mapping) or schedule.get("policy") != "transformer_policy":
        return ""
    rate, width, warmup = (schedule.get(name) for name in ("learning_rate", "d_model", "warmup_steps"))
    factor, most = schedule.get("coefficient", 1.0), schedule.get("max_lr")
    if not isinstance(rate, int | float) or not isinstance(factor, int | float):
        return ""
    if not isinstance(width, int) or not isinstance(warmup, int):
        return ""
    hat = f"; never above {most:g}" if isinstance(most, int | float) else ""
    return f"transformer: {rate * factor:g} · {width}^-0.5 · min(step^-0.5, step · {warmup}^-1.5){hat}"


def plain_run(name: str, *, host: str = "", ranks: int = 0) -> RunStarted:
    """A process of a run that began, of which little is known."""
    return RunStarted(
        run=visible(name),
        tandem=__version__,
        command=(),
        recipe="",
        world_size=ranks,
        host=host,
        python="",
        torch="",
    )


def plain_start(
    *,
    step: int,
    resumed_from: str = "",
    parameters: int = 0,
    ranks: int = 0,
    device: str = "",
    precision: str = "",
    max_steps: int = 0,
    schedule: str = "",
    gradient_bytes: int = 0,
) -> TrainingStarted:
    """A start of training."""
    return TrainingStarted(
        step=step,
        tokens=0,
        resumed_from=resumed_from,
        parameters=parameters,
        ranks=ranks,
        device=device,
        precision=precision,
        layout="",
        source_capacity=0,
        target_capacity=0,
        updates_per_epoch=0,
        pairs=0,
        max_steps=max_steps,
        schedule=schedule,
        target_tokens_per_update=0,
        way="",
        gradient_bytes=gradient_bytes,
    )


def plain_step(
    *,
    step: int,
    epoch: int = 0,
    loss: float = math.nan,
    nll: float = math.nan,
    learning_rate: float = math.nan,
    gradient_norm: float = math.nan,
    loss_scale: float = math.nan,
    target_tokens: int = 0,
    pairs: int = 0,
    duration_s: float = math.nan,
    phases: Mapping[str, float] | None = None,
) -> StepFinished:
    """A step, or the mean of those since the one before."""
    return StepFinished(
        step=step,
        epoch=epoch,
        loss=loss,
        nll=nll,
        learning_rate=learning_rate,
        gradient_norm=gradient_norm,
        loss_scale=loss_scale,
        skipped=False,
        target_tokens=target_tokens,
        source_tokens=0,
        pairs=pairs,
        batches=0,
        duration_s=duration_s,
        phases=phases or {},
        split=0,
    )
