"""A thousand drawn runs, judged: what is sure is right, numbers are possible, and what contradicts is not sure."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.truth.calibrate import Judged, compare
from benchmarks.truth.world.draw import draw
from benchmarks.truth.world.truth import label_run
from benchmarks.truth.world.write import write

from tandem.observe.agreement import contradictions
from tandem.observe.finding import Finding
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

RUNS, PARTS = 1_000, 20
MOST_WRONG = 0.01
"""Share of the answers of high confidence that may be wrong: a chance of 95 % is what high confidence asks for."""


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_runs_are_judged_rightly(part: int, tmp_path: Path) -> None:
    answers: list[Judged] = []
    for seed in range(part, RUNS, PARTS):
        run = tmp_path / str(seed)
        labels = label_run(write(draw(seed), run))
        findings = judge_run(read_series(run))
        _expect_possible_numbers(findings)
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
