"""Runs of 1,000 steps whose curves and schedules are known, of which each test moves one thing."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tests.unit.observe.verdicts.series_story import build_evaluations, build_series, build_start, build_steps

from tandem.observe.finding import Finding
from tandem.observe.rates import Plan
from tandem.observe.series.columns import Series

__all__ = ["RANKS", "SURE", "Story", "rank_of"]

Numbers = NDArray[np.float64]

RANKS = ("none", "low", "medium", "high")
SURE = {"high", "medium"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How a run learns under its schedule, and what was seen of it."""

    kind: str = "inverse_sqrt"
    planned: int = 1000
    steps: int = 1000
    cooldown: int = 0
    level: float = 2.0
    height: float = 0.002
    """Of the part of the loss that falls with the square root of the steps, at step 1,000."""
    rise: float = 0.0
    """Share of the level that the loss has risen by at step 1,000; it turns at step 500."""
    decay: float = 0.04
    """Share of the loss that the whole fall of the rate brings."""
    bleu: float | None = 0.0
    """What BLEU gains from step 500 to step 1,000; None: it was never measured."""
    probed: bool = True
    every: int = 50
    noise: float = 0.001
    """Share of the level."""
    seed: int = 1
    sentence: str | None = None
    """Formula as the log has it, where it is another than that of the kind."""
    logs_rates: bool = True

    @property
    def plan(self) -> Plan:
        """The true schedule."""
        return Plan(
            kind=self.kind, rate=7e-4, warmup=20, width=512, last=self.planned, cooldown=self.cooldown
        )

    def loss(self, step: Numbers) -> Numbers:
        """The true loss on the valid text."""
        share = step / 1000
        risen = self.rise * self.level * np.maximum(0.0, share - 0.5) / 0.5
        fallen = self.level + self.height * share**-0.5
        return (fallen + risen) * (1 + self.decay * self.plan.decay(step))

    def series(self) -> Series:
        """The run as it was logged."""
        random = np.random.default_rng(self.seed)
        at = np.arange(self.every, self.steps + 1, self.every).astype(np.float64)
        wobble = random.normal(0.0, 1.0, (3, 1000))[:, : len(at)]
        valid = self.loss(at) + self.noise * self.level * wobble[0]
        probe = replace(self, rise=-0.5 * self.rise).loss(at) - 0.05 + self.noise * self.level * wobble[1]
        bleu = None
        if self.bleu is not None:
            bleu = (25 + self.bleu * np.maximum(0.0, at - 500) / 500 + 20 * self.noise * wobble[2]).tolist()
        number = np.arange(1.0, self.steps + 1)
        rates = self.plan.rates(number) if self.logs_rates else np.full(self.steps, np.nan)
        learnt = replace(self, rise=-0.5 * self.rise).loss(number) + 0.7
        steps = build_steps(self.steps, loss=learnt, learning_rate=rates)
        sentence = f"{self.kind}: {self.plan.formula}" if self.sentence is None else self.sentence
        return build_series(
            steps=steps,
            evaluations=build_evaluations(
                [int(step) for step in at],
                valid.tolist(),
                probe=probe.tolist() if self.probed else None,
                bleu=bleu,
                half=0.3,
            ),
            starts=((5.0, build_start(max_steps=self.planned, schedule=sentence)),),
            recipe={},
        )


def rank_of(finding: Finding, verdict: str) -> int:
    """How sure an answer is of a verdict; 0 where it gives another."""
    return RANKS.index(finding.confidence) if finding.verdict == verdict else 0
