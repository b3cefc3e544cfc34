import math

import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import (
    build_evaluations,
    build_imported,
    build_recipe,
    build_series,
    build_start,
    build_steps,
    rate,
)

from tandem.observe.finding import Finding
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.trained import judge

STEPS = list(range(50, 1001, 50))


def falling(
    *, level: float, height: float, power: float = 0.5, noise: float = 0.005, seed: int = 1
) -> list[float]:
    random = np.random.default_rng(seed)
    share = np.array(STEPS) / STEPS[-1]
    return list(level + height * share**-power + random.normal(0.0, noise, len(STEPS)))


def told(series: Series) -> tuple[str, str]:
    finding = judge(series)
    assert (finding.number, finding.key, finding.figure) == (2, "trained", "losses")
    return finding.verdict, finding.confidence


def evidence(finding: Finding, name: str) -> float:
    (value,) = (each.value for each in finding.evidence if each.name == name)
    assert isinstance(value, float)
    return value


def test_a_loss_that_still_falls_says_no_whatever_rule_ended_the_run() -> None:
    finding = judge(build_series(evaluations=build_evaluations(STEPS, falling(level=1.0, height=0.6))))
    assert (finding.verdict, finding.confidence) == ("no", "high")
    assert "reached 1,000 steps" in finding.answer
    truth = 0.6 - 0.6 * 1.5**-0.5
    gain = evidence(finding, "expected gain in loss on the valid text from half as many steps again")
    assert gain == pytest.approx(truth, rel=0.3)


def test_a_loss_that_has_settled_says_yes() -> None:
    bleu = [26.0 + 0.05 * math.sin(7 * step) for step in STEPS]
    evaluations = build_evaluations(STEPS, falling(level=1.6, height=0.004), bleu=bleu, half=0.7)
    assert told(build_series(evaluations=evaluations)) == ("yes", "high")


def test_bleu_that_still_rises_over_a_settled_loss_says_partly() -> None:
    bleu = [20 + 6 * step / 1000 for step in STEPS]
    evaluations = build_evaluations(STEPS, falling(level=1.6, height=0.004), bleu=bleu, half=0.7)
    assert told(build_series(evaluations=evaluations)) == ("partly", "medium")


def test_a_loss_that_rises_again_says_yes_since_its_lowest_point() -> None:
    share = np.array(STEPS) / 1000
    valid = 2 + 0.5 * share**-0.5 + 2.0 * np.maximum(0, share - 0.4)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist())))
    assert (finding.verdict, finding.confidence) == ("yes", "medium")
    assert "BLEU over at least 4 evaluations" in finding.missing
    assert "best checkpoint" in finding.advice
    assert 350 <= evidence(finding, "step with the lowest loss on the valid text") <= 450


def test_a_loss_that_rises_while_bleu_rises_says_partly() -> None:
    share = np.array(STEPS) / 1000
    valid = 2 + 0.5 * share**-0.5 + 2.0 * np.maximum(0, share - 0.4)
    evaluations = build_evaluations(STEPS, valid.tolist(), bleu=(20 + 6 * share).tolist(), half=0.7)
    assert told(build_series(evaluations=evaluations))[0] == "partly"


def test_a_run_that_came_apart_says_no_with_the_reason() -> None:
    loss = np.full(1000, 4.0)
    loss[800:] = np.nan
    finding = judge(build_series(steps=build_steps(1000, loss=loss)))
    assert (finding.verdict, finding.confidence) == ("no", "high")
    assert "from step 801 on" in finding.answer


def test_a_run_in_its_warm_up_says_no() -> None:
    series = build_series(
        steps=build_steps(300, learning_rate=rate(np.arange(1.0, 301.0), warmup=4000)),
        starts=((5.0, build_start(schedule="inverse_sqrt: 0.0007 · min(step / 4000, (4000 / step)^0.5)")),),
        recipe=build_recipe(warmup_steps=4000),
    )
    finding = judge(series)
    assert (finding.verdict, finding.confidence) == ("no", "high")
    assert "4,000" in finding.answer


def test_a_model_that_is_stuck_is_not_trained_although_its_loss_is_flat() -> None:
    series = build_series(
        steps=build_steps(1000, loss=np.linspace(10.4, 7.0, 1000)),
        evaluations=build_evaluations(STEPS, falling(level=7.0, height=0.001)),
    )
    assert told(series) == ("no", "low")


def test_without_evaluations_a_model_that_is_stuck_is_hardly_trained() -> None:
    loss = np.concatenate([[10.4, 8.0], np.random.default_rng(1).normal(7.0, 0.1, 998)])
    assert told(build_series(steps=build_steps(1000, loss=loss))) == ("no", "low")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_without_enough_evaluations_a_falling_training_loss_says_no_but_not_for_sure(count: int) -> None:
    evaluations = build_evaluations([250, 500, 1000][:count], [4.0, 3.5, 3.0][:count])
    finding = judge(build_series(evaluations=evaluations))
    assert (finding.verdict, finding.confidence) == ("no", "low")
    assert finding.missing


def test_without_enough_evaluations_a_flat_training_loss_says_nothing() -> None:
    random = np.random.default_rng(1)
    series = build_series(steps=build_steps(1000, loss=random.normal(2.0, 0.1, 1000)))
    assert told(series) == ("cannot tell", "none")


def test_a_few_steps_say_nothing() -> None:
    assert told(build_series(steps=build_steps(5), recipe={}, starts=())) == ("cannot tell", "none")


def test_evaluations_that_are_not_numbers_are_left_out() -> None:
    valid = falling(level=1.0, height=0.6)
    valid[3] = valid[8] = math.nan
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid)))
    assert finding.verdict == "no"
    assert evidence(finding, "evaluations") == len(STEPS) - 2


def test_noise_as_large_as_what_is_asked_for_does_not_get_a_sure_answer() -> None:
    sure = 0
    for seed in range(10):
        valid = falling(level=1.98, height=0.04, noise=0.06, seed=seed)
        sure += told(build_series(evaluations=build_evaluations(STEPS, valid)))[1] == "high"
    assert sure <= 1


def test_the_reference_run_is_not_fully_trained() -> None:
    losses = [9.4593, 2.4003, 2.0124, 1.8661, 1.7754]
    facts = {"schedule": {"d_model": 512, "learning_rate": 2.0, "warmup_steps": 8000}}
    series = build_series(
        steps=build_steps(190, first=0, every=100, duration_s=1.685),
        evaluations=build_evaluations([0, 4001, 8002, 12003, 16004], losses, scores={"Eval_BLEU_Score": 0.3}),
        imported=build_imported(facts),
        starts=((0.0, build_start(max_steps=300_000, schedule="")),),
        recipe={},
        ended="",
    )
    finding = judge(series)
    assert (finding.verdict, finding.confidence) == ("no", "medium")
    assert "what the other tool calls a score is none" in finding.missing[0]
    planned = "expected gain in loss on the valid text from the steps still planned"
    assert evidence(finding, planned) > 0.1


def test_a_loss_that_jumped_lately_is_not_settled_and_an_old_jump_does_not_matter() -> None:
    valid = falling(level=1.98, height=0.005)
    valid[17], valid[18] = 4.1, 2.9
    assert told(build_series(evaluations=build_evaluations(STEPS, valid))) == ("cannot tell", "none")
    valid = falling(level=1.98, height=0.005)
    valid[7], valid[8] = 4.1, 2.9
    assert told(build_series(evaluations=build_evaluations(STEPS, valid)))[0] == "yes"


def test_a_loss_that_rose_on_training_pairs_too_is_no_sign_of_being_trained() -> None:
    valid = [*falling(level=3.0, height=0.5)[:12], *[4.6] * 8]
    probe = [value - 0.1 for value in valid]
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid, probe=probe)))
    assert (finding.verdict, finding.confidence) in {("no", "medium"), ("no", "low")}
    assert "thrown off" in finding.answer


def test_a_steep_fall_that_has_stopped_is_not_continued() -> None:
    fallen = [4.0 - 0.15 * place for place in range(14)]
    random = np.random.default_rng(2)
    valid = [*fallen, *(fallen[-1] + random.normal(0.0, 0.001, 6))]
    assert told(build_series(evaluations=build_evaluations(STEPS, valid)))[0] != "no"


@pytest.mark.parametrize("seed", range(6))
def test_a_fall_that_broke_off_between_few_evaluations_is_not_continued_with_confidence(seed: int) -> None:
    steps = list(range(100, 1001, 100))
    random = np.random.default_rng(seed)
    valid = 1.2 + 4.0 * np.minimum(steps, 700) ** -0.3 + random.normal(0.0, 0.01, len(steps))
    verdict, confidence = told(build_series(evaluations=build_evaluations(steps, valid.tolist())))
    assert verdict != "no" or confidence == "low"


def test_a_loss_that_has_settled_while_bleu_may_rise_on_is_yes_with_low_confidence_at_most() -> None:
    valid = falling(level=2.0, height=0.0005)
    bleu = (20 + np.random.default_rng(3).normal(0.0, 1.5, len(STEPS))).tolist()
    verdict, confidence = told(build_series(evaluations=build_evaluations(STEPS, valid, bleu=bleu, half=5.0)))
    assert verdict != "yes" or confidence == "low"


def test_what_bleu_gains_is_left_out_where_it_is_nothing() -> None:
    valid = falling(level=1.0, height=0.6)
    flat = judge(build_series(evaluations=build_evaluations(STEPS, valid, bleu=[0.0] * len(STEPS), half=0.0)))
    assert "BLEU by about" not in flat.answer
    rising = [10.0 + 10 * place for place in np.linspace(0, 1, len(STEPS))]
    told_of = judge(build_series(evaluations=build_evaluations(STEPS, valid, bleu=rising, half=0.5)))
    assert "raise BLEU by about" in told_of.answer


def test_bleu_of_very_few_sentences_is_missing() -> None:
    at = range(100, 1001, 100)
    evaluations = build_evaluations(
        at, [2.0 + 3 * 0.99**step for step in at], bleu=[20.0 + step / 100 for step in at], sentences=12
    )
    found = judge(build_series(evaluations=evaluations))
    assert "BLEU of at least 30 sentences" in found.missing
    assert "BLEU" not in found.answer.replace("0.2 BLEU", "")
