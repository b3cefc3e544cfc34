"""What a learning rate has still to do, and what was not seen, never make an answer surer."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.observe.verdicts.curve_story import RANKS, SURE, Story, rank_of

from tandem.observe.finding import Finding
from tandem.observe.series.columns import Series
from tandem.observe.verdicts import overfitting, trained

Judge = Callable[[Series], Finding]

FEW = settings(max_examples=25)
SETTLED = Story(height=0.002)
OVERFIT = Story(rise=0.1, bleu=-1.0)
DECAYING = [("cosine", 0), ("linear", 0), ("constant", 300), ("inverse_sqrt", 300)]
decaying = st.sampled_from(DECAYING)
decays = st.floats(0.02, 0.07)
seeds = st.integers(0, 10_000)


@FEW
@given(decaying, decays, st.integers(200, 550), seeds, st.floats(0.0005, 0.003))
def test_a_flat_curve_with_its_decay_ahead_is_not_called_trained(
    kind: tuple[str, int], decay: float, steps: int, seed: int, noise: float
) -> None:
    story = replace(SETTLED, kind=kind[0], cooldown=kind[1], decay=decay, steps=steps, seed=seed, noise=noise)
    finding = trained.judge(story.series())
    assert finding.verdict != "yes"
    assert finding.verdict == "cannot tell" or "will fall to zero" in finding.answer


@FEW
@given(decaying, decays, seeds)
def test_a_settled_curve_whose_decay_is_done_is_called_trained(
    kind: tuple[str, int], decay: float, seed: int
) -> None:
    story = replace(SETTLED, kind=kind[0], cooldown=kind[1], decay=decay, seed=seed)
    finding = trained.judge(story.series())
    # A loss that falls with the rate may be one that learns no more because the rate fell: seldom, that cannot be told.
    assert finding.verdict in {"yes", "cannot tell"} or finding.confidence == "low"


@FEW
@given(decaying, decays, st.integers(1000, 4000), seeds)
def test_planning_longer_never_makes_it_surer_that_a_run_is_trained(
    kind: tuple[str, int], decay: float, planned: int, seed: int
) -> None:
    story = replace(SETTLED, kind=kind[0], cooldown=kind[1], decay=decay, seed=seed)
    longer = replace(story, planned=planned)
    assert rank_of(trained.judge(longer.series()), "yes") <= rank_of(trained.judge(story.series()), "yes")


@FEW
@given(
    st.sampled_from(["constant", "cosine", "linear", "inverse_sqrt"]), st.integers(200, 1000), st.booleans()
)
def test_an_unknown_schedule_never_earns_high_confidence(kind: str, steps: int, logs_rates: bool) -> None:
    story = replace(SETTLED, kind=kind, steps=steps, sentence="as my colleague says", logs_rates=logs_rates)
    finding = trained.judge(story.series())
    assert finding.confidence != "high"
    assert finding.verdict != "yes" or "how the learning rate goes on" in finding.missing


@pytest.mark.parametrize(("steps", "confidences"), [(400, {"low"}), (800, {"low"}), (1000, {"medium"})])
def test_a_rate_that_never_falls_says_little_of_what_a_decay_would_bring(
    steps: int, confidences: set[str]
) -> None:
    finding = trained.judge(replace(SETTLED, kind="constant", steps=steps).series())
    assert finding.verdict == "yes"
    assert finding.confidence in confidences
    assert "rate that never falls" in finding.answer
    assert "optim.cooldown_steps" in finding.advice


@FEW
@given(st.sampled_from([SETTLED, OVERFIT, replace(SETTLED, height=0.3)]), seeds, st.sampled_from([0, 1]))
def test_evaluations_that_are_logged_twice_count_once(story: Story, seed: int, later: int) -> None:
    series = replace(story, seed=seed).series()
    twice = tuple(
        copy for each in series.evaluations for copy in (each, replace(each, step=each.step + later))
    )
    for judge in (trained.judge, overfitting.judge):
        once, again = judge(series), judge(replace(series, evaluations=twice))
        if later == 0:
            assert (once.verdict, once.grounds) == (again.verdict, again.grounds)
            continue
        # A step between copies moves the curve by next to nothing, and may move the chance over a border.
        chances = [found.grounds.chance if found.grounds else 0.0 for found in (once, again)]
        assert chances[0] == pytest.approx(chances[1], abs=0.02) or once.verdict != again.verdict
        assert once.verdict == again.verdict or max(chances) < 0.6


@pytest.mark.parametrize(
    ("judge", "story", "verdict"),
    [
        (trained.judge, SETTLED, "yes"),
        (overfitting.judge, SETTLED, "no"),
        (overfitting.judge, OVERFIT, "yes"),
    ],
)
def test_fewer_evaluations_never_make_an_answer_surer(judge: Judge, story: Story, verdict: str) -> None:
    ranks = [
        rank_of(judge(replace(story, every=every).series()), verdict) for every in (10, 50, 160, 250, 500)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] == RANKS.index("high")
    assert ranks[-1] < RANKS.index("medium")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("judge", "story", "verdict"), [(trained.judge, SETTLED, "yes"), (overfitting.judge, OVERFIT, "yes")]
)
def test_noise_takes_confidence(judge: Judge, story: Story, verdict: str, seed: int) -> None:
    ranks = [
        rank_of(judge(replace(story, noise=noise, seed=seed).series()), verdict)
        for noise in (0.001, 0.01, 0.03, 0.1)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] <= RANKS.index("low")


def moved(story: Story, name: str, values: Iterable[float]) -> list[Story]:
    changes: list[dict[str, Any]] = [{name: value} for value in values]
    return [replace(story, **change) for change in changes]


MOVES: dict[str, tuple[Judge, list[Story]]] = {
    "what is left to gain": (trained.judge, moved(SETTLED, "height", np.linspace(0.08, 0.16, 60))),
    "what is left to gain, under noise": (
        trained.judge,
        moved(replace(SETTLED, noise=0.005), "height", np.linspace(0.0, 0.5, 40)),
    ),
    "how far it has risen": (trained.judge, moved(SETTLED, "rise", np.linspace(0.0, 0.05, 40))),
    "a rise beside BLEU": (trained.judge, moved(replace(SETTLED, rise=0.2), "bleu", np.linspace(-1, 2, 40))),
    "the turn": (overfitting.judge, moved(SETTLED, "rise", np.linspace(0.003, 0.02, 120))),
    "BLEU beside a turn": (
        overfitting.judge,
        moved(replace(SETTLED, rise=0.2), "bleu", np.linspace(-0.2, 1.0, 80)),
    ),
    **{
        f"the end of {kind} with {cooldown}": (
            trained.judge,
            [replace(SETTLED, kind=kind, cooldown=cooldown, steps=steps) for steps in range(600, 1001, 10)],
        )
        for kind, cooldown in DECAYING
    },
}


@pytest.mark.parametrize("name", MOVES)
def test_crossing_a_border_never_leads_from_one_sure_answer_to_another(name: str) -> None:
    judge, stories = MOVES[name]
    found = [judge(story.series()) for story in stories]
    for before, after in pairwise(found):
        is_jump = before.verdict != after.verdict and {before.confidence, after.confidence} <= SURE
        assert not is_jump, (before.answer, after.answer)


def test_a_loss_that_a_higher_rate_raised_is_not_overfitting() -> None:
    """A run that is resumed with a longer plan goes back to a high rate, and its loss with it."""
    story = replace(SETTLED, kind="linear", planned=500, steps=500, every=25, probed=False, bleu=None)
    first, later = story.series(), replace(story, planned=2000, steps=800).series()
    evaluations = (*first.evaluations, *(each for each in later.evaluations if each.step > 500))
    starts = (*first.starts, (60.0, replace(later.starts[0][1], step=500)))
    rates = np.concatenate([first.steps.learning_rate, later.steps.learning_rate[500:]])
    series = replace(
        later, evaluations=evaluations, starts=starts, steps=replace(later.steps, learning_rate=rates)
    )
    for judge in (trained.judge, overfitting.judge):
        finding = judge(series)
        assert finding.verdict != "yes" or finding.confidence == "low"


@FEW
@given(st.sampled_from([("cosine", 0), ("linear", 0), ("constant", 400)]), st.floats(0.3, 1.0), seeds)
def test_a_loss_that_stands_still_because_its_rate_does_is_not_surely_trained(
    kind: tuple[str, int], power: float, seed: int
) -> None:
    """What is learnt goes with the sum of the rates: at the end of a plan it stops, with much left to learn."""
    story = replace(SETTLED, kind=kind[0], cooldown=kind[1], bleu=None)
    series = story.series()
    at = np.array([each.step for each in series.evaluations])
    sums = np.cumsum(story.plan.rates(np.arange(1.0, 1001.0)))
    loss = 1.0 + 2.0 * (sums[at - 1] / sums[-1]) ** -power
    noise = np.random.default_rng(seed).normal(0.0, 0.003, len(at))
    evaluations = tuple(
        replace(each, valid_loss=float(value))
        for each, value in zip(series.evaluations, loss + noise, strict=True)
    )
    finding = trained.judge(replace(series, evaluations=evaluations))
    assert finding.verdict != "yes" or finding.confidence == "low"
