import pytest

from tandem.errors import TandemError
from tandem.observe.imports.observed import Observed, read_bits_per_s, read_bytes_per_s, read_share


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1gbit", 1e9),
        ("1Gbit/s", 1e9),
        ("1Gb/s", 1e9),
        ("940Mbps", 940e6),
        ("220MB/s", 1.76e9),
        ("220 MB/s", 1.76e9),
        ("1MiB/s", 8 * 2**20),
        ("500bytes", 4000),
        ("2.5kbit", 2500),
    ],
)
def test_a_rate_says_whether_it_counts_bytes_or_bits(text: str, bits: float) -> None:
    assert read_bits_per_s(text) == pytest.approx(bits)
    assert read_bytes_per_s(text) == pytest.approx(bits / 8)


@pytest.mark.parametrize("text", ["", "220", "fast", "-1gbit", "1xbit", "0MB/s", "nanMB/s", "1iB"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(TandemError, match="is no rate: write 220MB/s"):
        read_bits_per_s(text)


def test_utilisation_is_percent() -> None:
    assert [read_share(text) for text in ("100", "98.5 %", "0%")] == [1.0, 0.985, 0.0]
    with pytest.raises(TandemError, match="is no utilisation: write percent, from 0 to 100"):
        read_share("101")


def test_only_what_was_seen_is_a_fact() -> None:
    assert Observed(nic_bytes_per_s=2.2e8).facts() == {"observed_nic_bytes_per_s": 2.2e8}
    assert Observed().facts() == {}
