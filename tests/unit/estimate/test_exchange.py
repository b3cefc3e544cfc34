"""What an exchange costs, by arithmetic, and what a larger update would change."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.estimate.exchange import MOST_EXPOSED, NUMBER_BYTES, codec_seconds, exposed_seconds, host_bytes
from tandem.estimate.larger_update import LargerUpdate

BASE = 60_880_896
"""Parameters of the reference run."""


@pytest.mark.parametrize(
    ("mode", "hosts", "ranks", "megabytes"),
    [
        ("exact", 2, 4, 365),
        ("exact", 2, 2, 244),
        ("bf16", 2, 4, 122),
        ("packed", 2, 4, 32),
        ("packed", 4, 4, 49),
        ("packed", 1, 4, 0),
    ],
)
def test_bytes_of_a_host_are_those_of_a_ring_or_of_codes(
    mode: str, hosts: int, ranks: int, megabytes: int
) -> None:
    assert host_bytes(mode, BASE, hosts=hosts, ranks=ranks) / 1e6 == pytest.approx(megabytes, abs=0.6)


@given(transfer_s=st.floats(0, 100), hiding_s=st.floats(0, 100), tail_share=st.floats(0, 1))
def test_computing_hides_all_but_the_tail_and_never_more_than_there_is(
    transfer_s: float, hiding_s: float, tail_share: float
) -> None:
    exposed_s = exposed_seconds(transfer_s, hiding_s=hiding_s, tail_share=tail_share)
    assert tail_share * transfer_s <= exposed_s <= transfer_s


@pytest.mark.parametrize("hosts", [2, 3, 8])
def test_fewer_bytes_take_longer_to_encode(hosts: int) -> None:
    costs = [codec_seconds(mode, BASE, hosts=hosts, shares=2) for mode in NUMBER_BYTES]
    assert costs[0] == 0 < costs[1] < costs[2] < 1


@given(compute_s=st.floats(0.01, 10), exposed_s=st.floats(0.001, 100))
def test_the_smallest_update_whose_exchange_hardly_shows_is_taken(compute_s: float, exposed_s: float) -> None:
    def step(times: int) -> tuple[float, float]:
        return times * compute_s + exposed_s, exposed_s

    larger = LargerUpdate.choose(step, tokens=25_000)
    assert larger.tokens == 25_000 * larger.times
    assert larger.after < larger.before
    assert 1 <= larger.gain <= larger.times
    assert larger.after <= MOST_EXPOSED or larger.times == 16
    if larger.times > 2:
        step_s, left_s = step(larger.times // 2)
        assert left_s / step_s > MOST_EXPOSED


def test_a_larger_update_is_told_with_its_price() -> None:
    text = str(LargerUpdate.choose(lambda times: (times * 0.45 + 0.2, 0.2), tokens=25_000))
    assert "An update of 4 times the text (batch.target_tokens=100000)" in text
    assert "from 31 % of a step to 10 %, and 1.3 times the tokens/s" in text
    assert "a quarter as many updates" in text
    assert f"square root of that, {math.sqrt(4):.2g}" in text
    assert "quality is not known" in text
