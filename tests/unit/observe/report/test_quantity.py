import math

import pytest

from tandem.observe.finding import Evidence
from tandem.observe.report.quantity import evidence_text, quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0125, "s", "12.5 ms"),
        (1.664, "s", "1.66 s"),
        (83_100.0, "s", "23 h 05 min"),
        (-120.0, "s", "-120 s"),
        (0.0, "s", "0.00 s"),
        (365_285_376.0, "bytes", "365 MB"),
        (999.6, "bytes", "1 kB"),
        (512.0, "bytes", "512 B"),
        (220e6, "bytes/s", "220 MB/s"),
        (1e9, "bits/s", "1 Gb/s"),
        (9.1e13, "flop/s", "91 TFLOP/s"),
        (0.693, "share", "69.3 %"),
        (15_060.2, "tokens/s", "15,060 tokens/s"),
        (1_500.0, "", "1,500"),
        (0.000988, "", "0.000988"),
        (26.44, "BLEU", "26.4 BLEU"),
        (math.nan, "s", "unknown"),
        (math.inf, "s", "without limit"),
    ],
)
def test_numbers_are_written_in_the_unit_that_suits_them(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_an_interval_stands_with_its_value() -> None:
    evidence = Evidence(name="n", value=1.15, unit="s", low=1.1, high=1.2, definition="d")
    assert evidence_text(evidence) == "1.15 s (1.10 s to 1.20 s)"


def test_a_text_is_left_alone() -> None:
    assert evidence_text(Evidence(name="n", value="three files", definition="d")) == "three files"
