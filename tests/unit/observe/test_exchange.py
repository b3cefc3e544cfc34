from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import exchanged, imported
from tests.unit.observe.verdicts.series_story import build_probes, build_steps

from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.series.columns import Series


def _measured(series: Series) -> Exposure:
    exposure = measure_exchange(series)
    assert exposure is not None
    return exposure


def test_parts_add_up_to_the_step() -> None:
    exposure = _measured(exchanged(network_s=0.3, slowing_s=0.1, late_s=0.2))

    parts = (
        exposure.data_s + exposure.compute_s + exposure.network_s + exposure.straggler_s,
        exposure.optimizer_s + exposure.other_s,
    )

    assert sum(parts) == pytest.approx(exposure.step_s, rel=1e-6)


def test_waiting_for_a_late_rank_is_not_the_network() -> None:
    exposure = _measured(exchanged(network_s=0.05, late_s=0.8))

    assert exposure.wait_s == pytest.approx(0.05, rel=0.05)
    assert exposure.straggler_s == pytest.approx(0.4, rel=0.05)
    assert not exposure.is_data_late


def test_a_rank_whose_data_come_late_is_known_as_such() -> None:
    assert _measured(exchanged(late_data_s=0.8)).is_data_late


def test_probes_add_what_the_exchange_slows_computing_by() -> None:
    exposure = _measured(exchanged(network_s=0.5, slowing_s=0.2))

    assert exposure.wait_s == pytest.approx(0.5, rel=0.05)
    assert exposure.network_s == pytest.approx(0.7, rel=0.05)
    assert exposure.low_s < exposure.network_s < exposure.high_s


def test_each_rank_is_slowed_by_its_own_probes_and_waits_less_for_the_slowest() -> None:
    series = exchanged(network_s=0.2, late_s=1.0)
    rows = [
        (20, 0, 2.2, 1.0 - 0.1, 1.2),
        (20, 1, 2.2, 2.0 - 0.4, 0.2),
    ]
    exposure = _measured(replace(series, probes=build_probes(*rows)))

    assert exposure.network_s == pytest.approx(0.6, rel=0.05)
    assert exposure.compute_s == pytest.approx(1.5 - 0.25, rel=0.02)
    assert exposure.straggler_s == pytest.approx(0.5 - 0.15, rel=0.05)


def test_an_exchange_that_hides_behind_computing_but_slows_it_is_seen() -> None:
    exposure = _measured(exchanged(network_s=0.0, slowing_s=0.3))

    assert exposure.network_s == pytest.approx(0.3, rel=0.1)


def test_without_probes_the_wait_is_a_lower_bound() -> None:
    exposure = _measured(exchanged(network_s=0.5, probed=False))

    assert exposure.probes == 0
    assert exposure.network_s == exposure.wait_s
    assert exposure.high_s > 2 * exposure.network_s


def test_a_wild_probe_among_several_changes_little() -> None:
    series = exchanged(network_s=0.2)
    wild = series.probes.synchronised_s.copy()
    wild[:2] += 5.0

    exposure = _measured(replace(series, probes=replace(series.probes, synchronised_s=wild)))

    assert exposure.network_s == pytest.approx(0.2, abs=0.05)


def test_probes_that_not_all_ranks_made_are_passed_over() -> None:
    series = exchanged()

    exposure = _measured(replace(series, probes=build_probes((20, 0, 9.0, 1.0, 0.1))))

    assert exposure.probes == 0


def test_a_rank_without_a_log_is_noticed() -> None:
    series = exchanged()
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1] = np.nan

    exposure = _measured(replace(series, ranks=replace(series.ranks, phases=phases)))

    assert not exposure.split.is_complete
    assert exposure.low_s == 0.0


def test_a_long_stall_of_the_exchange_stays_in_the_account() -> None:
    series = exchanged(network_s=0.02)
    exchange = series.ranks.phases["exchange"].copy()
    exchange[:, 200] += 60.0
    exposure = _measured(
        replace(series, ranks=replace(series.ranks, phases={**series.ranks.phases, "exchange": exchange}))
    )

    # The first step is not looked at.
    assert exposure.wait_s == pytest.approx((60 + 0.02 * 399) / 399, rel=0.05)
    assert exposure.long_wait_s == pytest.approx(60 / 399, rel=0.05)


@pytest.mark.parametrize("series", [exchanged(steps=4), imported()], ids=["four steps", "imported"])
def test_nothing_is_said_without_enough_phases(series: Series) -> None:
    assert measure_exchange(series) is None


def test_nothing_is_said_of_a_run_without_steps() -> None:
    assert measure_exchange(exchanged(steps=0)) is None
    assert len(build_steps(0)) == 0


def _only_rank_0(series: Series) -> Series:
    """As the log is on a host with a disk of its own."""
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1:] = np.nan
    hosts = (series.ranks.hosts[0], *("" for _ in series.ranks.hosts[1:]))
    return replace(series, ranks=replace(series.ranks, phases=phases, hosts=hosts))


def test_ranks_are_all_that_trained_not_those_that_left_a_log() -> None:
    exposure = _measured(_only_rank_0(exchanged()))

    assert exposure.ranks == 2
    assert not exposure.split.is_complete
