import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import build_imported, build_series, build_steps

from tandem.observe.finding import Finding
from tandem.observe.verdicts.step_time import judge


def value(finding: Finding, name: str) -> float:
    (found,) = (each.value for each in finding.evidence if each.name == name)
    assert isinstance(found, float)
    return found


def jitter(count: int, seed: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(np.random.default_rng(seed).lognormal(0.0, 0.05, count))


def test_a_steady_run_is_told_by_its_median_and_spread() -> None:
    seconds = 1.66 * jitter(2000)
    finding = judge(build_series(steps=build_steps(2000, duration_s=seconds)))
    assert (finding.number, finding.key, finding.verdict, finding.confidence) == (
        10,
        "step_time",
        "measured",
        "high",
    )
    assert finding.answer.startswith("1.66 s (median of 1,999 steps")
    assert "no drift" in finding.answer
    assert value(finding, "95th percentile") == pytest.approx(np.quantile(seconds[1:], 0.95))
    assert value(finding, "throughput") == pytest.approx(25_000 / 1.66, rel=0.01)


def test_compiling_and_outliers_do_not_move_the_median() -> None:
    seconds = 0.5 * jitter(1000)
    seconds[:2] = 60.0
    seconds[500] = 30.0
    finding = judge(build_series(steps=build_steps(1000, duration_s=seconds)))
    assert value(finding, "median") == pytest.approx(0.5, rel=0.02)
    assert value(finding, "steps left out") == 2
    assert value(finding, "outliers") == pytest.approx(1 / 998)


def test_a_run_that_grows_slower_says_so_from_what_to_what() -> None:
    seconds = np.linspace(0.5, 0.75, 1000) * jitter(1000)
    finding = judge(build_series(steps=build_steps(1000, duration_s=seconds)))
    assert "grew slower" in finding.answer
    assert value(finding, "change over the run") == pytest.approx(0.4, rel=0.1)
    assert finding.advice


def test_noise_is_not_called_drift() -> None:
    for seed in range(10):
        finding = judge(build_series(steps=build_steps(60, duration_s=0.5 * jitter(60, seed))))
        assert "no drift" in finding.answer


@pytest.mark.parametrize(("count", "confidence"), [(3, "low"), (20, "medium"), (100, "high")])
def test_short_runs_are_told_with_less_trust(count: int, confidence: str) -> None:
    assert judge(build_series(steps=build_steps(count, duration_s=0.5))).confidence == confidence


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_step_at_its_own_pace_it_cannot_tell(count: int) -> None:
    finding = judge(build_series(steps=build_steps(count)))
    assert (finding.verdict, finding.confidence) == ("cannot tell", "none")


def test_means_of_another_tool_are_called_means() -> None:
    steps = build_steps(45, first=100, every=100, duration_s=1.66, target_tokens=np.zeros(45, np.int64))
    finding = judge(build_series(steps=steps, imported=build_imported()))
    assert "44 means over 100 steps each" in finding.answer
    assert finding.confidence == "medium"
    assert all(each.name != "throughput" for each in finding.evidence)


def test_a_log_with_one_mean_is_not_said_to_have_a_median() -> None:
    steps = build_steps(2, duration_s=0.6, first=100, every=100)
    finding = judge(build_series(steps=steps, imported=build_imported()))
    assert finding.answer.startswith("0.60 s (mean over 100 steps, the only one that the log has)")
