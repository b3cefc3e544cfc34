"""A thousand drawn runs, judged: what is sure is right, numbers are possible, and what contradicts is not sure."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth.calibrate import Judged, compare
from benchmarks.truth.world.draw import draw
from benchmarks.truth.world.truth import label_run
from benchmarks.truth.world.write import write

from tandem.observe.agreement import contradictions
from tandem.observe.finding import Finding
from tandem.observe.series.columns import Series
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

RUNS, PARTS = 1_000, 20
MOST_WRONG = 0.01
"""Share of the answers of high confidence that may be wrong: a chance of 99 % is what high confidence asks for."""


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_runs_are_judged_rightly(part: int, tmp_path: Path) -> None:
    answers: list[Judged] = []
    for seed in range(part, RUNS, PARTS):
        run = tmp_path / str(seed)
        labels = label_run(write(draw(seed), run))
        series = read_series(run)
        findings = judge_run(series)
        _expect_possible_numbers(findings)
        _expect_advice_that_fits(series, findings)
        answers += [compare(seed, labels[finding.key], finding) for finding in findings]

    sure = [answer for answer in answers if answer.confidence == "high"]
    wrong = [answer for answer in sure if answer.outcome == "wrong"]
    assert len(sure) > len(answers) / 2
    assert len(wrong) <= MOST_WRONG * len(sure), wrong


def _expect_possible_numbers(findings: Sequence[Finding]) -> None:
    by_key = {finding.key: finding for finding in findings}
    for contradiction in contradictions(findings):
        assert all(by_key[key].confidence in {"low", "none"} for key in contradiction.keys)
    for finding in findings:
        assert "could not be judged" not in finding.answer
        assert (finding.verdict == "cannot tell") == (finding.confidence == "none")
    shares = [
        float(item.value)
        for item in by_key["gpus"].evidence
        if item.figure == "anatomy" and isinstance(item.value, int | float)
    ]
    assert not shares or math.isclose(sum(shares), 1.0, abs_tol=0.01)
    spent = {
        item.name: float(item.value)
        for item in by_key["duration"].evidence
        if item.unit == "s" and isinstance(item.value, int | float) and item.figure == "time_split"
    }
    whole = next(float(item.value) for item in by_key["duration"].evidence if item.name == "wall time")
    assert math.isclose(
        sum(seconds for name, seconds in spent.items() if name != "training"), whole, rel_tol=0.01
    )


def _expect_advice_that_fits(series: Series, findings: Sequence[Finding]) -> None:
    """Advice about a rank is to be seen in the chart of the ranks, and no setting is advised that the run has."""
    advice = {finding.key: finding.advice for finding in findings}
    named = re.search(r"waiting for rank (\d+)", advice["gpus"])
    if named is not None:
        waits = series.ranks.phases["exchange"]
        own = waits[int(named[1])]
        together = waits[:, np.isfinite(own)]
        # The rank for which others wait does not wait for them.
        assert np.nanmean(own) <= np.nanmean(together)
    optim = series.recipe.get("optim", {})
    assert isinstance(optim, Mapping)
    assert not (optim.get("cooldown_steps") and "optim.cooldown_steps" in " ".join(advice.values()))
