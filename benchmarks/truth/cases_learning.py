"""Simulated runs that differ in what they learn and in what befalls them."""

import math
from dataclasses import replace

from benchmarks.truth.scenario import Hardware, Learning, Plan, Scenario, Seen, Work

__all__ = ["LEARNING_CASES"]

_ALONE = Hardware(hosts=1)
_PAIR = Hardware(hosts=1, ranks_per_host=2)
_QUICK = Work(compute_s=0.25)
_FLAT = Learning(scale=100, power=1.6, bleu_scale=110, bleu_power=1.7)
_STEEP = Learning(scale=900, power=0.8, bleu_scale=2500, bleu_power=1.0)
_OVERFIT = Learning(
    scale=60, power=1.3, turns_at=1400, rises_by=0.45, bleu_scale=300, bleu_falls_by=2.0, top=18, gap=0.15
)
_LONG = Plan(steps=6000, max_steps=6000, evaluate_every=200)


def _case(name: str, story: str, learning: Learning, plan: Plan, seen: Seen | None = None) -> Scenario:
    if plan.ending == "finished":
        plan = replace(plan, max_steps=plan.steps)
    return Scenario(
        name=name,
        story=story,
        learning=learning,
        plan=plan,
        hardware=_ALONE,
        work=_QUICK,
        seen=seen or Seen(),
    )


LEARNING_CASES: tuple[Scenario, ...] = (
    _case("converged", "it went to its floor long ago", _FLAT, _LONG),
    _case(
        "converged-noisy",
        "at its floor, with noisy evaluations",
        replace(_FLAT, noise=0.02, bleu_noise=0.3),
        _LONG,
    ),
    _case(
        "converged-cyclic",
        "at its floor, with a wave of the epochs' order",
        replace(_FLAT, cycle=0.015, cycle_steps=1700),
        _LONG,
    ),
    _case("converged-no-bleu", "at its floor, never translated", _FLAT, replace(_LONG, scores=False)),
    _case(
        "stopped-early",
        "asked to stop after a tenth of the way",
        _STEEP,
        replace(_LONG, steps=2000, max_steps=20_000, evaluate_every=100, ending="stopped"),
    ),
    _case(
        "slow-power-law",
        "hardly falls any more, but will for long",
        Learning(floor=1.5, span=3.0, scale=50, power=0.35, bleu_scale=900, bleu_power=0.9),
        _LONG,
    ),
    _case(
        "nearly-trained",
        "the gain from more steps is about what counts as worth it: any answer is right",
        Learning(scale=100, power=1.15, bleu_scale=130, bleu_power=1.3),
        _LONG,
    ),
    _case("finished-untrained", "all steps were done, and the loss was still falling", _STEEP, _LONG),
    _case(
        "finished-untrained-noisy",
        "still falling, on a small noisy valid set",
        replace(_STEEP, noise=0.03, bleu_noise=0.4, valid_tokens=6000),
        _LONG,
    ),
    _case(
        "small-valid-set",
        "a valid set of a few dozen sentences says little",
        replace(_STEEP, scale=500, noise=0.08, bleu_noise=1.2, valid_tokens=1500),
        replace(_LONG, steps=3000),
    ),
    _case(
        "warming-up",
        "the learning rate is still rising",
        Learning(scale=700, power=0.7, bleu_scale=6000),
        replace(_LONG, steps=1500, max_steps=100_000, warmup=4000, evaluate_every=150, ending="running"),
    ),
    _case("overfitting", "the valid loss turned long ago", _OVERFIT, replace(_LONG, steps=4000)),
    _case(
        "overfitting-mildly",
        "the valid loss rose by two per cent",
        replace(_OVERFIT, rises_by=0.03, bleu_scale=80, bleu_falls_by=0.3, noise=0.004),
        replace(_LONG, steps=4200),
    ),
    _case(
        "overfitting-unprobed",
        "the valid loss turned, and training pairs were never measured alike",
        _OVERFIT,
        replace(_LONG, steps=4000),
        Seen(probe_losses=False),
    ),
    _case(
        "loss-up-bleu-up",
        "the valid loss rises while translations get better",
        Learning(scale=60, power=1.3, turns_at=1500, rises_by=0.14, top=30, bleu_scale=1600, bleu_power=1.2),
        replace(_LONG, steps=4500),
    ),
    _case(
        "gap-without-rise",
        "training pairs are learnt by heart, yet the valid loss is at its lowest",
        replace(_FLAT, gap=0.5),
        _LONG,
    ),
    _case(
        "flat-noise-not-overfitting",
        "flat, and noise makes the last evaluation the worst",
        replace(_FLAT, noise=0.025),
        replace(_LONG, steps=5000, evaluate_every=250),
    ),
    _case(
        "diverged-nan",
        "gradients were not finite from a step on",
        replace(_STEEP, breaks_at=2200, breaks_to=math.nan),
        replace(_LONG, steps=3600),
    ),
    _case(
        "diverged-explosion",
        "the loss jumped up and stayed there",
        replace(_STEEP, breaks_at=2500, breaks_to=7.4),
        replace(_LONG, steps=4000),
    ),
    _case(
        "diverged-early",
        "the loss jumped up in the warm-up and stayed there",
        replace(_STEEP, breaks_at=350, breaks_to=8.1),
        replace(_LONG, steps=2000, evaluate_every=100),
    ),
    _case(
        "spiked-and-recovered",
        "the loss jumped up in the middle and came down again",
        replace(_FLAT, spikes_at=2600),
        _LONG,
    ),
    _case(
        "spiked-at-the-end",
        "the loss jumped up just before the end and is on its way down",
        replace(_FLAT, spikes_at=5500),
        _LONG,
    ),
    _case("one-evaluation-lost", "one evaluation was no number", replace(_FLAT, lost_evaluation=14), _LONG),
    _case(
        "converged-low",
        "an easy task at its floor, where one per cent of the loss is next to nothing",
        Learning(
            floor=0.09, scale=40, power=1.8, top=96, bleu_scale=60, bleu_power=2.0, gap=0.01, noise=0.002
        ),
        _LONG,
    ),
    _case(
        "overfitting-noisily",
        "the valid loss turned, under much noise",
        replace(_OVERFIT, rises_by=0.2, noise=0.04),
        replace(_LONG, steps=4200),
    ),
    _case("no-evaluations", "nobody ever looked", _STEEP, replace(_LONG, steps=3000, evaluate_every=0)),
    _case("two-evaluations", "looked at twice", _STEEP, replace(_LONG, steps=2500, evaluate_every=1000)),
    _case(
        "few-evaluations-steep",
        "five evaluations, each far below the one before",
        _STEEP,
        replace(_LONG, steps=2500, max_steps=50_000, evaluate_every=500, ending="running"),
    ),
    _case(
        "still-running",
        "goes on: the logs just end",
        _STEEP,
        replace(_LONG, steps=2500, max_steps=20_000, ending="running"),
    ),
    replace(
        _case(
            "killed",
            "killed without a good-bye",
            _STEEP,
            replace(_LONG, steps=2750, max_steps=20_000, ending="killed"),
        ),
        hardware=_PAIR,
    ),
    replace(
        _case(
            "restarted-twice",
            "two workers died, and hundreds of steps were done again",
            _STEEP,
            replace(_LONG, steps=3500, max_steps=3500, killed_at=(1400, 2900)),
        ),
        hardware=Hardware(ranks_per_host=2),
    ),
    replace(
        _case(
            "restarted-from-nothing",
            "two workers died before there was a checkpoint, and a third one later",
            _STEEP,
            replace(_LONG, steps=2500, max_steps=2500, killed_at=(300, 700, 2100)),
        ),
        hardware=_PAIR,
    ),
    _case(
        "rate-restarted",
        "the schedule began anew in the middle",
        _STEEP,
        replace(_LONG, rate_restarts_at=3000),
    ),
    _case(
        "schedule-cosine", "half a cosine wave", _FLAT, replace(_LONG, schedule="cosine", learning_rate=1e-3)
    ),
    _case(
        "schedule-transformer",
        "the first paper's schedule",
        _FLAT,
        replace(_LONG, schedule="transformer", learning_rate=2.0, warmup=1000),
    ),
    _case(
        "schedule-constant",
        "a constant rate",
        _STEEP,
        replace(_LONG, schedule="constant", learning_rate=3e-4),
    ),
    _case("never-saved", "no checkpoint was ever written", _STEEP, replace(_LONG, steps=2500, save_every=0)),
    _case(
        "disk-full",
        "from the third checkpoint on the disk was full",
        _STEEP,
        replace(_LONG, steps=5000, save_every=500, save_fails_after=2),
    ),
    _case(
        "disk-full-at-once",
        "the disk was full from the start",
        _STEEP,
        replace(_LONG, steps=2000, save_every=500, save_fails_after=0),
    ),
    replace(
        _case(
            "sixty-steps",
            "a first try of sixty steps",
            _STEEP,
            replace(_LONG, steps=60, max_steps=50_000, evaluate_every=0, save_every=0, ending="stopped"),
        ),
        hardware=Hardware(),
    ),
    _case(
        "long",
        "forty thousand steps, nearly done",
        Learning(scale=500, power=1.35, bleu_scale=700, bleu_power=1.7),
        replace(_LONG, steps=40_000, max_steps=40_000, evaluate_every=1000, save_every=5000, warmup=4000),
    ),
)
