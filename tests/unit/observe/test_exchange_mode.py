"""The mode of an exchange as readers know it, and the bytes that follow from it."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.observe.verdicts.exchange_story import GRADIENT_BYTES, exchanged

from tandem.observe.exchange_mode import (
    ModeCost,
    codec_seconds,
    cost_in_mode,
    cost_of_exact,
    describe_mode,
    describe_residuals,
    encoded_mode,
    mode_bytes,
    step_bytes,
)
from tandem.observe.series.columns import Marked, Series
from tandem.observe.verdicts import network, step_network
from tandem.runlog.event import ExchangeChosen, ResidualsReset, ResidualsRestored

CHOSEN = ExchangeChosen(
    step=60,
    mode="packed",
    previous="exact",
    reason="measured",
    hosts=2,
    shares=2,
    exact_steps=50,
    modes=("exact", "bf16", "packed"),
    link_bytes=(365_285_376, 122_023_424, 32_384_192),
    exchange_s=(3.0, 1.0, 0.25),
    codec_s=(0.0, 0.01, 0.03),
    exposed_s=(2.5, 0.7, 0.08),
    compute_s=0.5,
)


def with_modes(*chosen: ExchangeChosen, **parts: Any) -> Series:
    series = exchanged(**parts)
    marks = tuple(
        Marked(time_s=float(number), rank=0, host=None, event=event) for number, event in enumerate(chosen)
    )
    return replace(series, marks=(*series.marks, *marks))


def test_a_run_whose_log_says_nothing_of_modes_is_exact() -> None:
    series = exchanged()
    assert encoded_mode(series) == ""
    assert step_bytes(series, 4) == pytest.approx(1.5 * GRADIENT_BYTES)
    assert math.isnan(codec_seconds(series))


def test_bytes_of_a_step_are_those_of_the_modes_that_its_steps_had() -> None:
    series = with_modes(CHOSEN)
    first, last, count = series.steps.step[0], series.steps.step[-1], len(series.steps)
    assert first < 60 < last
    exact = int((series.steps.step <= 60).sum())
    expected = (exact * 1.5 * GRADIENT_BYTES + (count - exact) * 32_384_192) / count
    assert step_bytes(series, 4) == pytest.approx(expected)
    assert encoded_mode(series) == "packed"
    assert codec_seconds(series) == 0.03


def test_the_first_steps_are_exact_and_a_later_choice_counts_from_its_own_step() -> None:
    early = replace(CHOSEN, step=0, reason="ordered")
    series = with_modes(early, replace(CHOSEN, step=int(exchanged().steps.step[-1]) - 1, mode="exact"))
    assert encoded_mode(series) == ""
    steps = series.steps.step
    packed = int(((steps > 50) & (steps < steps[-1])).sum())
    expected = ((len(steps) - packed) * 1.5 * GRADIENT_BYTES + packed * 32_384_192) / len(steps)
    assert step_bytes(series, 4) == pytest.approx(expected)


@pytest.mark.parametrize("judge", [network.judge, step_network.judge])
def test_the_questions_about_the_network_know_the_mode(judge: object) -> None:
    assert callable(judge)
    finding = judge(with_modes(CHOSEN))
    by_name = {each.name: each.value for each in finding.evidence}
    assert by_name["bytes a step, exact exchange"] == GRADIENT_BYTES  # a ring of two ranks
    assert by_name["bytes a step, predicted"] < by_name["bytes a step, exact exchange"]
    assert by_name["encoding and decoding a step"] == 0.03
    assert "bytes a step, exact exchange" not in {each.name for each in judge(exchanged()).evidence}


def seconds_of(cost: ModeCost | None) -> float:
    assert cost is not None
    return cost.seconds


def test_what_the_exchange_cost_before_and_costs_now_is_measured_where_it_can_be() -> None:
    auto = with_modes(CHOSEN)
    assert seconds_of(cost_of_exact(auto)) == 2.5
    assert seconds_of(cost_in_mode(auto)) == pytest.approx(0.1, rel=0.3)  # the probe of step 180
    unmeasured = (math.nan,) * 3
    ordered = replace(CHOSEN, step=0, reason="ordered", exposed_s=unmeasured, codec_s=unmeasured)
    told = with_modes(ordered)
    # Step 20 was still exact.
    assert seconds_of(cost_of_exact(told)) == pytest.approx(0.1, rel=0.3)
    assert cost_of_exact(with_modes(replace(ordered, exact_steps=0))) is None
    waits = cost_in_mode(with_modes(ordered, probed=False))
    assert seconds_of(waits) == pytest.approx(0.1, rel=0.1)
    assert waits is not None
    assert "lower bound" in waits.origin
    assert cost_in_mode(exchanged()) is None
    assert mode_bytes(told, 4) == 32_384_192
    assert mode_bytes(exchanged(), 4) == 1.5 * GRADIENT_BYTES


def test_the_answer_says_what_a_mode_saved_and_its_evidence_the_numbers() -> None:
    finding = network.judge(with_modes(CHOSEN))
    assert "Gradients go in mode packed: 32.4 MB a step instead of 244 MB, which cost" in finding.answer
    assert "of it; an exact exchange cost 2.50 s." in finding.answer
    by_name = {each.name: each.value for each in finding.evidence}
    assert by_name["exchange mode"] == "packed"
    assert by_name["bytes a step, saved"] == GRADIENT_BYTES - 32_384_192
    assert by_name["exposed exchange, exact"] == 2.5
    assert "exposed exchange, mode packed" in by_name


def test_modes_and_residuals_in_words() -> None:
    assert describe_mode(CHOSEN) == (
        "hosts exchange gradients in mode packed (measured): 32.4 MB a step on the fullest link, exact 365.3 MB"
    )
    restored = ResidualsRestored(step=8, expected=4, found=3, is_same_layout=True)
    assert describe_residuals(restored).startswith("1 of 4 residuals")
    assert describe_residuals(replace(restored, found=4)) == ""
    reset = describe_residuals(ResidualsReset(step=4003, skipped=3, ranks=(1, 5)))
    assert reset.startswith(
        "residuals of rank 1, 5 were not finite, and 3 steps up to step 4,003 were skipped: "
    )
    unused = describe_residuals(replace(restored, found=0, is_used=False))
    assert "not used" in unused
    assert "not found" not in unused
    assert "shared out" in describe_residuals(replace(restored, found=4, is_same_layout=False))
