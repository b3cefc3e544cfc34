import math

import pytest

from tandem.observe.numbers import count, decimal, duration, link_rate, megabytes, percent, share, short_count


def test_a_count_has_thousands_separators() -> None:
    assert count(4_524_868) == "4,524,868"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999_999, "999,999"),
        (1_000_000, "1.0 million"),
        (271_340_000, "271.3 million"),
        (999_949_999, "999.9 million"),
        (999_950_000, "1.0 billion"),
        (4_500_000_000, "4.5 billion"),
        (2_100_000_000_000, "2,100.0 billion"),
    ],
)
def test_a_short_count_is_exact_below_a_million(number: int, text: str) -> None:
    assert short_count(number) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 MB"),
        (1, "< 0.001 MB"),
        (499, "< 0.001 MB"),
        (500, "0.001 MB"),
        (61_234, "0.061 MB"),
        (958_600_000, "958.6 MB"),
        (100_000_000_000, "100,000.0 MB"),
    ],
)
def test_megabytes_are_millions_of_bytes(size: int, text: str) -> None:
    assert megabytes(size) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0.0, "0.0 %"),
        (1e-9, "< 0.1 %"),
        (0.0004, "< 0.1 %"),
        (0.0006, "0.1 %"),
        (0.0312, "3.1 %"),
        (0.9994, "99.9 %"),
        (0.99999, "> 99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_percentage_says_none_and_all_only_where_it_is_so(part: float, text: str) -> None:
    assert percent(part) == text


@pytest.mark.parametrize(("number", "text"), [(1.1448, "1.14"), (29.91, "29.9"), (1234.56, "1,234.6")])
def test_a_ratio_keeps_the_decimals_that_matter(number: float, text: str) -> None:
    assert decimal(number) == text


def test_nothing_of_nothing_is_no_share() -> None:
    assert share(0, 0) == 0
    assert share(1, 4) == 0.25


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3_599.6, "1 h 00 min"),
        (7_500, "2 h 05 min"),
        (86_399.9, "1 d 0 h"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_duration_is_told_in_its_two_greatest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (math.nan, "–"),
        (0.0, "0 Mb/s"),
        (20.0, "< 1 Mb/s"),
        (25e6, "200 Mb/s"),
        (125e6, "1 Gb/s"),
        (1.56e9, "12.5 Gb/s"),
    ],
)
def test_links_are_rated_as_they_are_sold(bytes_per_s: float, text: str) -> None:
    assert link_rate(bytes_per_s) == text
