from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.observe.confidence import (
    Grounds,
    Kind,
    Scale,
    confidence_of,
    decide,
    reason_of,
    spread_over,
)
from tandem.observe.statistics import Estimate

SCALE = Scale(borders=(0.10, 0.25), answers=("no", "partly", "yes"))
ORDER = ("none", "low", "medium", "high")

shares = st.floats(min_value=0, max_value=1)
grounds = st.builds(
    Grounds,
    chance=shares,
    kind=st.sampled_from(Kind),
    coverage=shares,
    lacks=st.lists(st.sampled_from(["probes", "logs"]), max_size=2).map(tuple),
)


def around(value: float, half: float) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half)


def test_what_was_measured_throughout_and_lies_clear_of_the_borders_is_sure() -> None:
    assert confidence_of(Grounds()) == "high"
    assert reason_of(Grounds()) == ""


@pytest.mark.parametrize(
    ("part", "most", "reason"),
    [
        ({"chance": 0.92}, "medium", "border"),
        ({"chance": 0.7}, "low", "border"),
        ({"chance": 0.4}, "none", "border"),
        ({"kind": Kind.NOMINAL}, "low", "nominal, not measured"),
        ({"kind": Kind.ASSUMED}, "low", "assumed, not measured"),
        ({"coverage": 0.7}, "medium", "70 % of the training time"),
        ({"coverage": 0.3}, "low", "30 % of the training time"),
        ({"lacks": ("probes",)}, "medium", "not measured: probes"),
    ],
)
def test_the_weakest_part_limits_it_and_is_named(part: dict[str, object], most: str, reason: str) -> None:
    weak = replace(Grounds(), **part)  # type: ignore[arg-type]

    assert confidence_of(weak) == most
    assert reason in reason_of(weak)


@given(grounds, grounds)
def test_less_evidence_never_makes_it_surer(one: Grounds, other: Grounds) -> None:
    kinds = (Kind.MEASURED, Kind.BOUND, Kind.NOMINAL, Kind.ASSUMED)
    worse = Grounds(
        chance=min(one.chance, other.chance),
        kind=max(one.kind, other.kind, key=kinds.index),
        coverage=min(one.coverage, other.coverage),
        lacks=(*one.lacks, *other.lacks),
    )

    assert ORDER.index(confidence_of(worse)) <= ORDER.index(confidence_of(one))


@given(value=shares, half=st.floats(min_value=1e-6, max_value=0.5))
def test_an_answer_whose_interval_holds_a_border_is_not_sure(value: float, half: float) -> None:
    estimate = around(value, half)
    is_cut = any(estimate.low <= border <= estimate.high for border in SCALE.borders)

    decision = decide(SCALE, estimate)

    # The interval leaves 2.5 % on either side.
    assert not is_cut or confidence_of(decision.grounds) != "high" or decision.grounds.chance < 0.976


@given(share=shares, coverage=shares, rest=shares)
def test_what_was_not_looked_at_may_be_anything(share: float, coverage: float, rest: float) -> None:
    spread = spread_over(Estimate(value=share, low=share, high=share), coverage)

    assert spread.low - 1e-9 <= share * coverage + rest * (1 - coverage) <= spread.high + 1e-9


def test_a_number_that_was_ordered_decides_nothing_near_a_border() -> None:
    assert decide(SCALE, around(0.24, 0.02), kind=Kind.NOMINAL).answer == "cannot tell"
    assert decide(SCALE, around(0.02, 0.01), kind=Kind.NOMINAL).answer == "no"
