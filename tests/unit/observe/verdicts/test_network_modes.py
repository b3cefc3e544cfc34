"""Advice about modes and larger updates: only what there is to gain, and nothing that is in force."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.observe.test_exchange_mode import CHOSEN
from tests.unit.observe.verdicts.exchange_story import exchanged, link
from tests.unit.observe.verdicts.series_story import TOKENS

from tandem.observe.exchange import measure_exchange
from tandem.observe.ring import larger_step
from tandem.observe.series.columns import Marked, Series
from tandem.observe.verdicts.network import judge
from tandem.runlog.event import ExchangeChosen

UNMEASURED = (math.nan,) * 3


def ordered(mode: str) -> ExchangeChosen:
    return replace(
        CHOSEN, step=0, mode=mode, reason="ordered", exact_steps=0, exposed_s=UNMEASURED, codec_s=UNMEASURED
    )


def run_in(chosen: ExchangeChosen, *, network_s: float, bytes_per_s: float = 100e6) -> Series:
    series = exchanged(network_s=network_s, steps=200, links=(link(bytes_per_s),))
    marked = Marked(time_s=0.0, rank=0, host=None, event=chosen)
    return replace(series, marks=(*series.marks, marked))


def test_where_a_mode_helps_enough_a_larger_update_is_not_named() -> None:
    advice = judge(run_in(ordered("exact"), network_s=0.3)).advice
    assert "exchange.mode=auto" in advice
    assert "packed, sends 32.3 MB a step instead of 244 MB" in advice
    assert "times the text" not in advice


def test_where_no_mode_helps_enough_a_larger_update_is_named_with_its_price() -> None:
    series = run_in(ordered("packed"), network_s=0.6)
    exposure = measure_exchange(series)
    assert exposure is not None
    step_s, left_s = larger_step(exposure, 8)
    advice = judge(series).advice
    assert f"An update of 8 times the text (batch.target_tokens={8 * TOKENS})" in advice
    assert f"to {100 * left_s / step_s:.0f} %" in advice
    assert "an eighth as many updates" in advice
    assert "square root of that, 2.8" in advice
    assert "quality is not known" in advice


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(["exact", "bf16", "packed"]),
    reason=st.sampled_from(["ordered", "measured", "unmeasured", "resumed"]),
    network_s=st.floats(0.02, 20),
    megabytes_per_s=st.floats(1, 10_000),
)
def test_advice_names_no_mode_that_is_in_force_and_no_update_of_the_same_size(
    mode: str, reason: str, network_s: float, megabytes_per_s: float
) -> None:
    chosen = replace(ordered(mode), reason=reason)
    finding = judge(run_in(chosen, network_s=network_s, bytes_per_s=1e6 * megabytes_per_s))
    # Whoever did not order a mode has auto already, and packed is the smallest.
    assert ("exchange.mode" in finding.advice) <= (reason == "ordered" and mode != "packed")
    assert f"batch.target_tokens={TOKENS})" not in finding.advice
    if finding.verdict == "no":
        assert finding.advice == ""
    if finding.verdict == "yes" and "exchange.mode" not in finding.advice:
        assert "times the text" in finding.advice


@pytest.mark.parametrize("times", [2, 4, 8])
def test_a_larger_step_promises_less_than_what_it_does(times: int) -> None:
    """All that takes longer with more text does so; only the exchange and the optimiser stay."""
    exposure = measure_exchange(exchanged(network_s=0.5, late_s=0.2))
    assert exposure is not None
    step_s, left_s = larger_step(exposure, times)
    assert left_s == exposure.network_s
    fixed_s = exposure.network_s + exposure.optimizer_s + exposure.other_s + exposure.stalled_s
    assert step_s == pytest.approx(times * (exposure.step_s - fixed_s) + fixed_s, rel=1e-6)
