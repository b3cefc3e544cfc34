import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import exchanged
from tests.unit.observe.verdicts.series_story import TOKENS, build_samples

from tandem.observe.devices import (
    device_name,
    flops_utilisation,
    is_peak_known,
    read_gauges,
    tokens_per_s,
)
from tandem.observe.exchange import measure_exchange


def test_flops_utilisation_is_the_models_operations_over_all_measured_peaks() -> None:
    series = exchanged(peak=10e12)
    exposure = measure_exchange(series)
    assert exposure is not None

    found = flops_utilisation(series, exposure)

    assert found == pytest.approx(3.65e8 * TOKENS / exposure.step_s / 20e12, rel=1e-6)
    assert tokens_per_s(series, exposure) == pytest.approx(TOKENS / exposure.step_s)


def test_without_a_measured_peak_nothing_is_claimed() -> None:
    series = exchanged(peak=None)
    exposure = measure_exchange(series)
    assert exposure is not None

    assert math.isnan(flops_utilisation(series, exposure))


def test_a_peak_below_what_the_devices_did_is_no_measure_of_them() -> None:
    series = exchanged(peak=1e9)
    exposure = measure_exchange(series)
    assert exposure is not None

    utilisation = flops_utilisation(series, exposure)
    assert utilisation > 1
    assert not is_peak_known(utilisation)


def test_gauges_are_means_while_training() -> None:
    power = np.full((1, 500), 150.0, np.float32)
    held = np.zeros((1, 500), np.bool_)
    held[:, ::2] = True

    found = read_gauges(
        replace(exchanged(), samples={"alpha": build_samples(gpu_power_w=power, gpu_throttled=held)})
    )

    assert found.utilisation == 1.0
    assert found.power == pytest.approx(0.5)
    assert found.throttled == pytest.approx(0.5, abs=0.01)
    assert found.memory == pytest.approx(0.75)


def test_a_host_without_gpus_has_no_gauges() -> None:
    found = read_gauges(replace(exchanged(), samples={"alpha": build_samples(gpus=0)}))

    assert found.gpus == 0
    assert math.isnan(found.utilisation)


def test_the_peak_is_that_of_all_ranks_also_where_one_alone_left_a_log() -> None:
    series = exchanged(peak=10e12)
    unlogged = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in unlogged.values():
        column[1] = np.nan
    alone = replace(
        series, ranks=replace(series.ranks, phases=unlogged, hosts=("alpha", "")), devices=series.devices[:1]
    )
    exposure = measure_exchange(alone)
    assert exposure is not None

    assert flops_utilisation(alone, exposure) == pytest.approx(
        3.65e8 * TOKENS / exposure.step_s / 20e12, rel=1e-6
    )


def test_a_device_is_named_by_the_start_or_by_its_measurement_or_not_at_all() -> None:
    assert device_name(exchanged()) == "NVIDIA V100"
    assert device_name(exchanged(starts=())) == "NVIDIA V100"
    assert device_name(exchanged(starts=(), peak=None)) == ""


def test_a_power_limit_is_told_apart_from_faults_with_the_clock_that_it_leaves() -> None:
    clock = np.full((1, 500), 1800.0, np.float32)
    capped = np.zeros((1, 500), np.bool_)
    clock[:, ::2], capped[:, ::2] = 1350.0, True

    found = read_gauges(
        replace(exchanged(), samples={"alpha": build_samples(gpu_clock_mhz=clock, gpu_capped=capped)})
    )

    assert found.throttled == 0
    assert found.capped == pytest.approx(0.5, abs=0.01)
    assert found.capped_clock == pytest.approx(0.75)
