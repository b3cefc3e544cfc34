import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import GRADIENT_BYTES, carried, exchanged, link
from tests.unit.observe.verdicts.series_story import build_samples, build_start

from tandem.observe.exchange import measure_exchange
from tandem.observe.ring import (
    gradient_bytes,
    link_capacity,
    ordered_link,
    ring_bytes,
    traffic_per_step,
    what_if,
)
from tandem.observe.series.columns import Marked
from tandem.runlog.event import TrainingFinished


def test_a_ring_of_four_moves_one_and_a_half_times_the_gradients() -> None:
    assert ring_bytes(243.5e6, 4) == pytest.approx(365.25e6)
    assert ring_bytes(243.5e6, 1) == 0


def test_gradient_bytes_come_from_the_start_or_what_ranks_gave_or_the_parameters() -> None:
    series = exchanged()
    silent = replace(series, starts=((0.0, build_start(gradient_bytes=0)),))
    unsent = replace(silent, ranks=replace(silent.ranks, sent_bytes=np.zeros_like(silent.ranks.sent_bytes)))

    assert gradient_bytes(series) == GRADIENT_BYTES
    assert gradient_bytes(silent) == GRADIENT_BYTES
    assert gradient_bytes(unsent) == 4 * 60_880_896
    assert gradient_bytes(replace(unsent, starts=())) == 0


def test_a_speed_that_the_switch_agreed_on_is_not_what_the_link_carries() -> None:
    series = replace(exchanged(), samples={"alpha": build_samples()})

    measured = link_capacity(replace(series, links=(link(110e6), link(100e6))))

    assert measured is not None
    assert measured.bytes_per_s == 100e6
    assert link_capacity(series) is None
    assert ordered_link(series) == 125e6
    assert math.isnan(ordered_link(exchanged()))


def test_a_link_that_carried_more_than_was_measured_is_as_fast_as_that() -> None:
    series = exchanged(links=(link(100e6),))
    traffic = traffic_per_step(replace(series, samples=carried(series, 244e6)))

    capacity = link_capacity(series, traffic)

    assert capacity is not None
    assert capacity.bytes_per_s == pytest.approx(traffic[0].fullest_bytes_per_s)
    assert "more than was measured" in capacity.origin


def test_traffic_of_the_link_is_counted_a_step_and_loopback_is_not() -> None:
    series = exchanged()

    found = traffic_per_step(replace(series, samples=carried(series, 244e6)))

    assert [each.interface for each in found] == ["eth0", "eth0"]
    assert found[0].sent_bytes == pytest.approx(244e6, rel=0.02)
    assert found[0].received_bytes == pytest.approx(244e6, rel=0.02)


def test_time_in_which_the_run_was_stopped_carried_nothing() -> None:
    series = exchanged()
    samples = carried(series, 244e6)
    times = series.steps.time_s + np.where(np.arange(len(series.steps)) < 200, 0.0, 5000.0)
    ended_s, back_s = float(times[199]), float(times[200])
    later = {
        host: replace(each, time_s=each.time_s + np.where(each.time_s > ended_s, 5000.0, 0.0))
        for host, each in samples.items()
    }
    finished = TrainingFinished(step=200, tokens=1, reason="asked to stop", duration_s=1.0)
    stopped = replace(
        series,
        steps=replace(series.steps, time_s=times),
        starts=(*series.starts, (back_s - 1.0, build_start(step=200, ranks=2))),
        marks=(Marked(time_s=ended_s + 0.1, rank=0, host=None, event=finished),),
        samples=later,
    )

    assert traffic_per_step(stopped)[0].sent_bytes == pytest.approx(244e6, rel=0.03)


def test_samples_of_another_time_are_no_traffic() -> None:
    series = exchanged(steps=20)

    assert traffic_per_step(replace(series, samples={"alpha": build_samples(begin_s=9999.0)})) == ()
    assert traffic_per_step(series) == ()


def test_a_faster_link_saves_at_most_what_is_exposed() -> None:
    exposure = measure_exchange(exchanged(network_s=0.5))
    assert exposure is not None

    other = what_if(exposure, transfer_s=3.0)

    assert other.perfect_s == pytest.approx(exposure.step_s - exposure.network_s)
    assert other.double_rate_s == other.perfect_s


def test_without_the_links_speed_the_least_is_promised() -> None:
    exposure = measure_exchange(exchanged(network_s=0.5))
    assert exposure is not None

    other = what_if(exposure, transfer_s=math.nan)

    assert other.double_rate_s == pytest.approx(exposure.step_s - exposure.network_s / 2)
    assert 1 < other.double_batch_gain < 2


def test_segments_that_nobody_counted_are_not_none() -> None:
    series = exchanged()
    samples = carried(series, 244e6)
    silent = {
        host: replace(each, retransmitted=np.full_like(each.retransmitted, np.nan))
        for host, each in samples.items()
    }
    assert [each.retransmitted for each in traffic_per_step(replace(series, samples=samples))] == [0, 0]
    assert all(np.isnan(each.retransmitted) for each in traffic_per_step(replace(series, samples=silent)))
