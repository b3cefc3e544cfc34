"""Many numbers read at once are the numbers that Python reads one by one."""

import json
import random

import numpy as np
import pytest

from tandem.observe.series.columns import Counts
from tandem.observe.series.digits import Text

HEAD = b'{"schema":1,"time_ns":'


def placed(texts: list[str]) -> tuple[Text, Counts, Counts]:
    """The texts in a row, far enough from the start for a word before each."""
    joined, starts, stops = HEAD, [], []
    for text in texts:
        starts.append(len(joined))
        joined += text.encode()
        stops.append(len(joined))
        joined += b","
    return Text(joined + b"        "), np.array(starts), np.array(stops)


def test_decimals_are_within_a_rounding_of_what_python_reads() -> None:
    dice = random.Random(1)
    values = [dice.choice((1, -1)) * 10.0 ** dice.uniform(-20, 15) for _ in range(2_000)]
    values += [round(value, 6) for value in values] + [0.0, 1.0, 1e-05, 123456.0, 1e16, 7e22]
    texts = [json.dumps(value) for value in values] + ["17", "0", "-3"]
    read, bad = Text.decimal(*placed(texts))
    assert not bad.any()
    np.testing.assert_allclose(read, [float(text) for text in texts], rtol=1e-15)


def test_whole_numbers_are_exact_up_to_nanoseconds_since_1970() -> None:
    texts = ["0", "7", "12345678", "123456789", "1767225600123456789", "9007199254740993"]
    read, bad = Text.whole(*placed(texts))
    assert not bad.any()
    assert read.tolist() == [int(text) for text in texts]


@pytest.mark.parametrize("text", ["", '"nan"', "1e-300", "0x12", "1.2.3", "true", "--1", "9" * 25, "9" * 20])
def test_what_is_no_plain_number_is_told(text: str) -> None:
    _, bad = Text.decimal(*placed(["1.5", text]))
    assert bad.tolist() == [False, True]


def test_a_decimal_is_no_whole_number() -> None:
    _, bad = Text.whole(*placed(["15", "1.5", "-1"]))
    assert bad.tolist() == [False, True, True]
