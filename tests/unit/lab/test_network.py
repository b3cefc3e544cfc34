import ipaddress

import pytest

from tandem.errors import TandemError
from tandem.lab.network import choose_network, loss_filter, token_bucket


def test_a_network_is_chosen_that_nothing_else_uses() -> None:
    seeds = [str(number) for number in range(50)]
    taken = [ipaddress.IPv4Network(text) for text in ("10.0.0.0/9", "10.200.7.0/24", "192.168.0.0/16")]
    for seed in seeds:
        found = choose_network(taken, seed)
        assert found.prefixlen == 24
        assert not any(found.overlaps(other) for other in taken)
    assert len({choose_network([], seed) for seed in seeds}) > 40


def test_where_all_private_addresses_are_routed_those_for_measuring_are_used() -> None:
    found = choose_network([ipaddress.IPv4Network("10.0.0.0/8")], "x")
    assert found.subnet_of(ipaddress.IPv4Network("198.18.0.0/15"))


def test_where_every_address_is_routed_the_lab_is_refused() -> None:
    with pytest.raises(TandemError, match="No range of addresses is free"):
        choose_network([ipaddress.IPv4Network("0.0.0.0/0")], "x")


@pytest.mark.parametrize(
    ("rate_bits", "burst"), [(10**6, "262144b"), (5 * 10**8, "262144b"), (10**10, "5000000b")]
)
def test_the_burst_is_never_small_and_grows_with_the_rate(rate_bits: int, burst: str) -> None:
    words = token_bucket(rate_bits)
    assert words[words.index("rate") + 1] == f"{rate_bits}bit"
    assert words[words.index("burst") + 1] == burst


@pytest.mark.parametrize(("loss", "limit"), [(0.5, 2**31), (1.0, 2**32 - 1), (0.01, 42949673)])
def test_a_packet_is_dropped_below_its_share_of_all_numbers(loss: float, limit: int) -> None:
    load, compare, first, second = (line.split() for line in loss_filter(loss)[-1].split(",")[1:])
    assert load == ["32", "0", "0", str(2**32 - 0x1000 + 56)]
    assert compare == ["53", "1", "0", str(limit)]
    assert (first[-1], second[-1]) == ("2", "0")
