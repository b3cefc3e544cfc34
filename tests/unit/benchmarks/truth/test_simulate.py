"""Simulated runs are whole run folders, their books are right, and clear ones are judged right."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth.cases import IMPORTED, SIMULATED
from benchmarks.truth.imported import write_imported
from benchmarks.truth.labels import label_run
from benchmarks.truth.scenario import Hardware, Link, Plan, Scenario, Work
from benchmarks.truth.score import score_run
from benchmarks.truth.simulate import simulate

from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

SHORT = Plan(steps=400, max_steps=400, warmup=40, evaluate_every=50, save_every=100)


def simulated(name: str) -> Scenario:
    return next(each for each in SIMULATED if each.name == name)


def test_there_are_enough_runs_with_names_of_their_own() -> None:
    names = [each.name for each in SIMULATED] + [each.name for each in IMPORTED]
    assert len(names) == len(set(names)) >= 60


def test_what_is_written_is_read_without_damage(tmp_path: Path) -> None:
    truth = simulate(Scenario(name="whole", story="", plan=SHORT), tmp_path / "run")
    series = read_series(tmp_path / "run")
    assert series.damaged == 0
    assert series.is_closed
    assert series.steps.step.tolist() == list(range(1, 401))
    assert series.ranks.ranks == 2
    assert np.isfinite(series.ranks.phases["exchange"]).all()
    assert len(series.evaluations) == truth.evaluations == 8
    assert series.samples.keys() == {"node1", "node2"}
    assert series.end_s == pytest.approx(truth.wall_s, abs=1.0)


def test_steps_that_a_restart_does_again_are_counted(tmp_path: Path) -> None:
    plan = replace(SHORT, killed_at=(150, 370))
    truth = simulate(Scenario(name="again", story="", plan=plan), tmp_path / "run")
    series = read_series(tmp_path / "run")
    assert truth.redone_steps == series.redone_steps == 50 + 70


@pytest.mark.parametrize(("bits_per_s", "low", "high"), [(1e9, 0.7, 0.9), (100e9, 0.0, 0.03)])
def test_the_networks_share_is_what_vanishes_without_it(
    tmp_path: Path, bits_per_s: float, low: float, high: float
) -> None:
    scenario = Scenario(name="share", story="", plan=SHORT, link=Link(bits_per_s=bits_per_s))
    assert low < simulate(scenario, tmp_path / "run").network_share < high


def test_a_straggler_is_no_network(tmp_path: Path) -> None:
    work = Work(slow_rank=1, slow_factor=2.0)
    truth = simulate(Scenario(name="slow", story="", plan=SHORT, work=work), tmp_path / "run")
    assert truth.network_share < 0.05
    assert truth.straggler_share > 0.2


def test_labels_of_one_rank_say_that_there_is_no_network(tmp_path: Path) -> None:
    scenario = Scenario(name="one", story="", plan=SHORT, hardware=Hardware(hosts=1))
    labels = label_run(scenario, simulate(scenario, tmp_path / "run"))
    assert labels["network"].verdicts == {"no"}


@pytest.mark.parametrize(
    "name",
    ["network-10g-fast", "data-bound", "overfitting", "converged", "diverged-nan", "no-evaluations"],
)
def test_a_clear_run_is_judged_right(tmp_path: Path, name: str) -> None:
    scenario = simulated(name)
    truth = simulate(scenario, tmp_path / "run")
    rows = score_run(name, "simulated", label_run(scenario, truth), judge_run(read_series(tmp_path / "run")))
    assert len(rows) == 11
    assert [(row.question, row.reason) for row in rows if row.outcome != "right"] == []


@pytest.mark.parametrize("case", IMPORTED, ids=lambda case: case.name)
def test_an_imported_run_is_judged_right(tmp_path: Path, case: object) -> None:
    imported = next(each for each in IMPORTED if each is case)
    write_imported(imported, tmp_path / "run")
    rows = score_run(imported.name, "imported", imported.labels, judge_run(read_series(tmp_path / "run")))
    assert [(row.question, row.reason) for row in rows if row.outcome != "right"] == []
