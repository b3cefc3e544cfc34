"""What a link delivers is measured, whatever its interface claims."""

import math

import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import build_samples, build_series

from tandem.observe.delivered import Delivered, delivered, delivered_by, speeds_text
from tandem.runlog.event import LinkMeasured

SLOW, FAST = 25e6, 1e9


def link(sender: str, receiver: str, bytes_per_s: float) -> LinkMeasured:
    return LinkMeasured(
        sender=sender,
        receiver=receiver,
        connection="open",
        latency_s=2e-4,
        bytes_per_s=bytes_per_s,
        loss=0.0,
        datagrams=0,
    )


def rate_of(
    host: str = "alpha",
    interface: str = "eth0",
    *links: LinkMeasured,
    highest: float = 0.0,
    is_busiest: bool = True,
) -> Delivered | None:
    return delivered(
        host,
        interface,
        links=links,
        examined=(),
        highest_bytes_per_s=highest,
        is_busiest=is_busiest,
    )


def test_the_slowest_measured_link_of_a_host_is_its_rate() -> None:
    links = (link("alpha", "beta", FAST), link("beta", "alpha", SLOW), link("beta", "gamma", 1e6))
    assert rate_of("alpha", "eth0", *links) == Delivered(bytes_per_s=SLOW, is_measured=True)


def test_links_named_by_addresses_stand_for_all_hosts() -> None:
    assert rate_of("alpha", "eth0", link("10.0.0.1", "10.0.0.2", SLOW)) == Delivered(
        bytes_per_s=SLOW, is_measured=True
    )


def test_an_interface_that_no_link_passes_has_what_was_seen() -> None:
    measured = link("alpha", "beta", SLOW)
    quiet = rate_of("alpha", "eth1", measured, highest=3.0, is_busiest=False)
    assert quiet == Delivered(bytes_per_s=3.0, is_measured=False)


@pytest.mark.parametrize("links", [(), (link("alpha", "beta", math.nan),)])
def test_without_a_measurement_it_is_the_highest_rate_that_was_seen(links: tuple[LinkMeasured, ...]) -> None:
    assert rate_of("alpha", "eth0", *links, highest=SLOW) == Delivered(bytes_per_s=SLOW, is_measured=False)
    assert rate_of("alpha", "eth0", *links) is None


def test_more_than_was_measured_proves_that_the_link_delivers_it() -> None:
    measured = link("alpha", "beta", SLOW)
    assert str(rate_of("alpha", "eth0", measured, highest=1.05 * SLOW)) == "measured 200 Mb/s"
    assert str(rate_of("alpha", "eth0", measured, highest=2 * SLOW)) == "highest seen 400 Mb/s"


@pytest.mark.parametrize("nominal", [10**9, 10**10, 10**11])
def test_the_nominal_speed_changes_nothing_of_what_is_delivered(nominal: int) -> None:
    rates = np.array([[0.0], [24e6]], np.float32) * np.ones(50, np.float32)
    samples = build_samples(50, bits_per_s=(0, nominal), sent_bytes_per_s=rates, received_bytes_per_s=rates)
    series = build_series(samples={"alpha": samples}, links=(link("alpha", "beta", SLOW),))
    rate = delivered_by(series, "alpha", 1)
    assert rate == Delivered(bytes_per_s=SLOW, is_measured=True)
    assert speeds_text(rate, nominal_bits_per_s=nominal).startswith("measured 200 Mb/s, nominal 1")
    assert delivered_by(series, "alpha", 0) is None


def test_behind_the_loopback_there_is_no_link() -> None:
    assert rate_of("alpha", "lo", link("alpha", "beta", SLOW), highest=5e9) is None


def test_what_is_not_known_is_not_said() -> None:
    assert speeds_text(None, nominal_bits_per_s=0) == ""
    assert speeds_text(None, nominal_bits_per_s=10**9) == "nominal 1 Gb/s"
