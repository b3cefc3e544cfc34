"""Runs that differ in what a test chooses, and in nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.unit.observe.report.told_run import card
from tests.unit.observe.verdicts.series_story import (
    build_evaluations,
    build_process,
    build_recipe,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.series.columns import Series
from tandem.runlog.event import SampleTranslated

AT = (200, 400, 600, 800, 1000)


def bleu_curve(end: float) -> list[float]:
    return [end * (1 - np.exp(-step / 300)) / (1 - np.exp(-AT[-1] / 300)) for step in AT]


def loss_curve(end: float) -> list[float]:
    return [end + 3 * np.exp(-step / 200) - 3 * np.exp(-AT[-1] / 200) for step in AT]


def samples(words: str = "Why did she sell the bicycle?") -> tuple[SampleTranslated, ...]:
    return tuple(
        SampleTranslated(
            step=1000, set="valid", number=number, source=f"{number} {words}", reference=words, hypothesis=""
        )
        for number in (0, 1500)
    )


def build_run(
    *,
    bleu: float = 27.0,
    loss: float = 2.0,
    half: float = 0.6,
    seed: int = 1,
    step_s: float = 0.5,
    width: int = 512,
    at: Sequence[int] = AT,
    **parts: Any,
) -> Series:
    """A thousand steps, evaluated every two hundred."""
    wobble = np.random.default_rng(seed).normal(1.0, 0.05, 1000)
    evaluated = parts.pop("evaluated", {})
    whole: dict[str, Any] = {
        "steps": build_steps(1000, duration_s=step_s * wobble),
        "evaluations": build_evaluations(
            at,
            loss_curve(loss)[: len(at)],
            bleu=bleu_curve(bleu)[: len(at)],
            half=half,
            step_s=step_s,
            **evaluated,
        ),
        "translations": samples(),
        "recipe": {**build_recipe(), "model": {"width": width}, "name": f"run {seed}", "seed": seed},
        "starts": ((5.0, build_start()),),
        "processes": tuple(build_process(rank) for rank in range(2)),
        "card": card(),
        "ended": "reached 1,000 steps",
    }
    return build_series(**{**whole, **parts})
