import math

from tandem.telemetry.sampler.growth import Growth


def test_counters_are_told_by_how_much_they_grew() -> None:
    growth = Growth()
    growth.since_last({"a": 10, "b": 5})
    assert growth.since_last({"a": 13, "b": 5}) == {"a": 3, "b": 0}
    assert growth.since_last({"a": 20}) == {"a": 7}


def test_a_new_counter_or_one_that_began_anew_is_not_known_until_the_next_look() -> None:
    growth = Growth()
    assert math.isnan(growth.since_last({"a": 10})["a"])
    assert math.isnan(growth.since_last({"a": 3})["a"])
    assert growth.since_last({"a": 4}) == {"a": 1}
