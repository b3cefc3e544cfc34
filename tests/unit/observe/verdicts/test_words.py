import pytest
from tests.unit.observe.verdicts.series_story import build_imported, build_series

from tandem.observe.verdicts.words import bit_rate, byte_rate, evaluate_more, megabytes_of, seconds


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (seconds(1.66), "1.66 s"),
        (seconds(0.0199), "19.9 ms"),
        (seconds(1234.0), "1,234 s"),
        (byte_rate(220e6), "220 MB/s"),
        (byte_rate(1.5e6), "1.5 MB/s"),
        (bit_rate(125e6), "1 Gb/s"),
        (bit_rate(6.25e6), "50 Mb/s"),
        (megabytes_of(365.3e6), "365 MB"),
        (megabytes_of(4.22e6), "4.22 MB"),
    ],
)
def test_numbers_are_said_to_three_digits(said: str, text: str) -> None:
    assert said == text


def test_settings_are_called_as_the_tool_that_trained_calls_them() -> None:
    assert "(evaluate.every_steps)" in evaluate_more(build_series())
    assert "(eval_steps)" in evaluate_more(build_series(imported=build_imported({"eval_steps": 4001})))
    assert evaluate_more(build_series(imported=build_imported())) == "Evaluate more often."
