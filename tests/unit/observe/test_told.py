import math
from dataclasses import replace

import pytest
from tests.unit.observe.verdicts.exchange_story import REFERENCE, exchanged, imported
from tests.unit.observe.verdicts.series_story import build_steps

from tandem.observe.facts import fact_count, fact_number
from tandem.observe.told import told_link


def test_the_reference_run_moves_365_megabytes_a_step() -> None:
    told = told_link(imported(**REFERENCE))

    assert told.fp32_bytes == pytest.approx(365.3e6, rel=1e-3)
    assert told.step_s == 1.66
    assert told.sizes == (told.fp32_bytes,)


def test_mixed_precision_leaves_two_sizes_possible() -> None:
    told = told_link(imported(**REFERENCE, precision="mixed"))

    assert told.sizes == (told.fp32_bytes, told.fp32_bytes / 2)


def test_bytes_that_were_told_go_before_arithmetic() -> None:
    told = told_link(imported(**REFERENCE, precision="mixed", gradient_bytes_per_step_per_link=1e8))

    assert told.sizes == (1e8,)


def test_what_was_not_told_is_not_a_number() -> None:
    assert math.isnan(fact_number(imported(gpus="four"), "gpus"))
    assert math.isnan(fact_number(exchanged(), "gpus"))


def test_bytes_that_an_importer_reckoned_say_nothing_about_the_precision() -> None:
    told = told_link(imported(**REFERENCE, precision="mixed", gradient_bytes_per_step_per_link=365_285_376))

    assert len(told.sizes) == 2


def test_gradients_that_are_summed_in_32_bits_have_one_size_whatever_the_model_computes_in() -> None:
    told = told_link(imported(**REFERENCE, precision="mixed", gradient_precision="fp32"))

    assert told.sizes == (told.fp32_bytes,)


def test_rates_that_cannot_carry_the_bytes_in_the_step_are_found_out() -> None:
    told = told_link(imported(gpus=4, hosts=2, observed_nic_bytes_per_s=25e6, observed_link_bits_per_s=1e9))
    fits = told_link(imported(gpus=4, hosts=2, observed_nic_bytes_per_s=200e6, observed_link_bits_per_s=2e9))
    silent = told_link(imported(gpus=4, hosts=2))

    assert told.least_bytes_per_s == pytest.approx(365_285_376 / 1.66)
    assert (told.is_seen_too_little, told.is_link_too_slow) == (True, True)
    assert (fits.is_seen_too_little, fits.is_link_too_slow) == (False, False)
    assert (silent.is_seen_too_little, silent.is_link_too_slow) == (False, False)


def test_the_first_line_after_a_start_is_no_step_to_reckon_with() -> None:
    series = imported(**REFERENCE)
    steps = build_steps(2, duration_s=[9.0, 1.66], first=100, every=100)

    assert told_link(replace(series, steps=steps)).step_s == 1.66


@pytest.mark.parametrize("number", [1e308, -1e308, 10**400, float("inf"), float("nan"), True, "4"])
def test_a_number_that_no_run_can_have_is_none(number: float) -> None:
    series = imported(gpus=number, reported_parameters=number)
    assert math.isnan(fact_number(series, "gpus"))
    assert fact_count(series, "reported_parameters") == 0


def test_a_part_of_a_gpu_is_none() -> None:
    assert told_link(imported(gpus=0.3, reported_parameters=1e9)).ranks == 0
