import pytest

from tandem.errors import TandemError
from tandem.lab.link import Link, changed, describe, read_delay, read_loss, read_rate


@pytest.mark.parametrize(
    ("text", "bits"),
    [("100kbit", 10**5), ("200mbit", 2 * 10**8), ("1gbit", 10**9), ("2.5gbit", 25 * 10**8), ("none", None)],
)
def test_rates_are_read_in_bits(text: str, bits: int | None) -> None:
    assert read_rate(text) == bits


@pytest.mark.parametrize(
    "text", ["", "1", "1 gbit", "1GBIT", "-1mbit", "99kbit", "101gbit", "1mbit burst 1", "1e3mbit", "inf"]
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(TandemError, match="is no rate: write 100kbit to 100gbit"):
        read_rate(text)


@pytest.mark.parametrize(("text", "seconds"), [("0ms", 0.0), ("200us", 2e-4), ("0.2ms", 2e-4), ("1.5s", 1.5)])
def test_delays_are_read_in_seconds(text: str, seconds: float) -> None:
    assert read_delay(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5", "-5ms", "11s", "5 ms", "ms", "1ms 2ms"])
def test_what_is_no_delay_is_refused(text: str) -> None:
    with pytest.raises(TandemError, match="is no delay"):
        read_delay(text)


def test_a_loss_is_read_as_a_share() -> None:
    assert [read_loss(text) for text in ("0%", "0.5%", "100%")] == pytest.approx([0.0, 0.005, 1.0])


@pytest.mark.parametrize("text", ["1", "101%", "-1%", "%"])
def test_what_is_no_loss_is_refused(text: str) -> None:
    with pytest.raises(TandemError, match="is no loss"):
        read_loss(text)


def test_words_change_what_they_name_and_leave_the_rest() -> None:
    link = Link(rate_bits=10**9, delay_s=0.001)
    assert changed(link, ["down"]) == Link(rate_bits=10**9, delay_s=0.001, is_up=False)
    assert changed(link, ["rate", "50mbit", "loss", "1%"]) == Link(
        rate_bits=5 * 10**7, delay_s=0.001, loss=0.01
    )
    assert changed(link, ["delay", "0ms", "rate", "none"]) == Link()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [([], "Say what becomes"), (["cut"], "A link has no 'cut'"), (["rate"], "rate needs a value")],
)
def test_words_that_say_nothing_are_refused(words: list[str], complaint: str) -> None:
    with pytest.raises(TandemError, match=complaint):
        changed(Link(), words)


def test_a_link_is_described_by_what_is_special_about_it() -> None:
    assert describe(Link()) == "up, any rate"
    whole = Link(rate_bits=2 * 10**8, delay_s=0.0002, loss=0.01, is_up=False)
    assert describe(whole) == "down, 200 Mb/s, 0.2 ms, 1 % loss"
