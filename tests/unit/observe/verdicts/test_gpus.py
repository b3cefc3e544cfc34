from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.observe.test_shares import CHANGED, mark
from tests.unit.observe.verdicts.exchange_story import REFERENCE, exchanged, imported
from tests.unit.observe.verdicts.series_story import build_probes, build_samples, build_start

from tandem.observe.verdicts.gpus import judge


def test_devices_that_compute_all_the_time_near_their_peak_are_fully_used() -> None:
    found = judge(exchanged(network_s=0.02, peak=9e12))

    assert (found.verdict, found.confidence) == ("yes", "high")


def test_a_small_model_keeps_devices_busy_without_filling_them() -> None:
    found = judge(exchanged(network_s=0.02, peak=100e12))

    assert (found.verdict, found.confidence) == ("partly", "high")
    assert "too small" in found.answer
    assert "larger batch" in found.advice


def test_without_a_measured_peak_yes_is_uncertain() -> None:
    found = judge(exchanged(network_s=0.02, peak=None))

    assert (found.verdict, found.confidence) == ("yes", "low")
    assert any("peak" in each for each in found.missing)


@pytest.mark.parametrize(
    ("parts", "wait", "advice"),
    [
        ({"network_s": 1.0}, "for the network", "a faster link"),
        ({"network_s": 1.0, "hosts": ("alpha", "alpha")}, "for the exchange between ranks", "fewer workers"),
        ({"network_s": 0.02, "data_s": 1.0}, "for data", "Data come too slowly"),
        ({"network_s": 0.02, "late_s": 2.0}, "for the slowest rank", "waiting for rank 1 (it is slower)"),
    ],
)
def test_what_they_wait_for_is_named(parts: dict[str, Any], wait: str, advice: str) -> None:
    found = judge(exchanged(**parts))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert wait in found.answer
    assert advice in found.advice


def test_slowing_that_few_probes_tell_badly_may_be_computing() -> None:
    rows = [(step, rank, 1.1, alone, 0.1) for step, alone in ((20, 1.0), (60, 0.6)) for rank in (0, 1)]

    found = judge(exchanged(network_s=0.1, compute_s=0.8, slowing_s=0.2, probes=build_probes(*rows)))

    assert found.confidence in {"low", "none"}


def test_utilisation_is_shown_with_why_it_proves_nothing() -> None:
    found = judge(replace(exchanged(network_s=1.0), samples={"alpha": build_samples()}))

    assert found.verdict == "no"
    assert "read 100.0 %, but" in found.answer
    assert "proves nothing" in found.answer


def test_a_run_without_gpus_is_answered_for_its_cores() -> None:
    found = judge(exchanged(network_s=0.02, starts=((5.0, build_start(device="cpu")),)))

    assert "no GPU in this run" in found.answer
    assert not any("GPU" in each for each in found.missing)


def test_an_imported_run_follows_from_its_network() -> None:
    found = judge(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("no", "medium")
    assert judge(imported(gpus=4)).verdict == "cannot tell"
    assert judge(imported(gpus=4, hosts=2, observed_link_bits_per_s=1e9)).confidence == "low"


def test_without_phases_nothing_is_told() -> None:
    assert judge(exchanged(steps=3)).verdict == "cannot tell"


def test_where_the_log_names_no_device_none_is_called_a_gpu() -> None:
    found = judge(exchanged(network_s=0.02, starts=(), peak=None))

    assert "GPU" not in found.answer
    assert "what device it ran on" in found.missing


def test_ranks_without_a_log_are_missed() -> None:
    series = exchanged(network_s=1.0)
    for column in series.ranks.phases.values():
        column[1] = np.nan

    found = judge(series)

    assert found.confidence != "high"
    assert "logs of all ranks for all of the time" in found.missing


def test_equal_shares_that_were_ordered_are_named_where_a_rank_is_slower() -> None:
    series = exchanged(network_s=0.02, late_s=2.0)
    even = replace(series, recipe={"batch": {"shares": "even"}})

    assert "batch.shares=auto would give it less to do" in judge(even).advice
    assert "batch.shares" not in judge(series).advice


def test_the_largest_and_the_least_share_are_evidence() -> None:
    series = exchanged()
    found = judge(replace(series, marks=(*series.marks, *mark(CHANGED))))

    shares = {each.name: each.value for each in found.evidence if each.name.endswith("share of an update")}
    assert shares == {"largest share of an update": 0.75, "least share of an update": 0.25}


def test_a_power_limit_is_a_fact_and_heat_a_fault() -> None:
    flags = np.ones((1, 500), np.bool_)
    whole = exchanged(network_s=0.02, peak=9e12)
    capped = judge(replace(whole, samples={"alpha": build_samples(gpu_capped=flags)}))
    hot = judge(replace(whole, samples={"alpha": build_samples(gpu_throttled=flags)}))

    assert capped.verdict == hot.verdict == "yes"
    assert "cooling" not in capped.advice
    assert "see to cooling" in hot.advice
    held = {each.name: each.value for each in capped.evidence}
    assert (held["at the power limit"], held["clock held down"]) == (1.0, 0.0)
