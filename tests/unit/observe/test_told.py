import math

import pytest
from tests.unit.observe.verdicts.exchange_story import REFERENCE, exchanged, imported

from tandem.observe.told import told_link, told_number


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
    assert math.isnan(told_number(imported(gpus="four"), "gpus"))
    assert math.isnan(told_number(exchanged(), "gpus"))


def test_bytes_that_an_importer_reckoned_say_nothing_about_the_precision() -> None:
    told = told_link(imported(**REFERENCE, precision="mixed", gradient_bytes_per_step_per_link=365_285_376))

    assert len(told.sizes) == 2
