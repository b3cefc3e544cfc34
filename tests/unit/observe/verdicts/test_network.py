from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import carried, exchanged, imported, link, starved

from tandem.observe.series.columns import Series
from tandem.observe.verdicts.network import judge


@pytest.mark.parametrize(
    ("network_s", "slowing_s", "verdict"), [(0.02, 0.0, "no"), (0.15, 0.05, "partly"), (1.0, 0.1, "yes")]
)
def test_the_share_that_a_perfect_network_saves_decides(
    network_s: float, slowing_s: float, verdict: str
) -> None:
    found = judge(exchanged(network_s=network_s, slowing_s=slowing_s))

    assert (found.verdict, found.confidence) == (verdict, "high")


def test_slowing_that_no_wait_shows_makes_it_the_network() -> None:
    found = judge(exchanged(network_s=0.02, slowing_s=0.5))

    assert found.verdict == "yes"


def test_near_a_border_confidence_is_low() -> None:
    assert judge(exchanged(network_s=0.347)).confidence == "low"


def test_a_lower_bound_over_the_border_is_proof_even_without_probes() -> None:
    found = judge(exchanged(network_s=1.0, probed=False))

    assert (found.verdict, found.confidence) == ("yes", "high")
    assert "at least" in found.answer
    assert any("probes" in each for each in found.missing)


def test_a_small_wait_without_probes_is_no_with_less_confidence() -> None:
    found = judge(exchanged(network_s=0.02, probed=False))

    assert (found.verdict, found.confidence) == ("no", "medium")


def test_a_middling_wait_without_probes_is_uncertain() -> None:
    assert judge(exchanged(network_s=0.15, probed=False)).confidence == "low"


def test_a_straggler_is_named_and_is_not_the_network() -> None:
    found = judge(exchanged(network_s=0.02, late_s=0.8))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "waiting for the slowest rank." in found.answer


def test_slow_data_are_named_and_are_not_the_network() -> None:
    found = judge(exchanged(network_s=0.02, data_s=1.0))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "waiting for data" in found.answer
    assert "whose data come late" in judge(exchanged(network_s=0.02, late_data_s=1.0)).answer


def test_a_reader_that_sets_the_pace_hides_a_slow_network() -> None:
    found = judge(starved())

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "the reader of data sets the pace" in found.answer
    assert "reader first" in found.advice
    without = next(each.value for each in found.evidence if each.name == "step without network")
    assert without == next(each.value for each in found.evidence if each.name == "step")


def test_data_that_always_take_their_time_do_not_hide_the_network() -> None:
    assert judge(exchanged(network_s=1.0, data_s=0.3)).verdict == "yes"


def test_full_links_and_busy_gpus_do_not_make_it_the_network() -> None:
    series = exchanged(network_s=0.02, links=(link(240e6),))

    found = judge(replace(series, samples=carried(series, 244e6)))

    full = next(each for each in found.evidence if each.name == "alpha eth0 full")
    assert isinstance(full.value, float)
    assert full.value > 0.9
    assert found.verdict == "no"


def test_one_rank_exchanges_nothing() -> None:
    found = judge(exchanged(hosts=("alpha",)))

    assert (found.verdict, found.confidence) == ("no", "high")


def test_ranks_of_one_host_use_its_memory() -> None:
    found = judge(exchanged(network_s=0.8, hosts=("alpha", "alpha")))

    assert found.verdict == "no"
    assert "through its memory" in found.answer
    assert found.advice


def _half_logged(series: Series) -> Series:
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1] = np.nan
    return replace(series, ranks=replace(series.ranks, phases=phases))


def test_with_a_rank_unheard_of_a_wait_may_be_anything() -> None:
    found = judge(_half_logged(exchanged(network_s=1.0)))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "logs of all ranks" in found.missing


def test_without_phases_nothing_is_told() -> None:
    found = judge(exchanged(steps=3))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")


def test_what_others_would_give_is_said_where_it_matters() -> None:
    found = judge(exchanged(network_s=1.0, links=(link(243.5e6),)))

    assert "twice as fast" in found.advice
    assert "twice the size" in found.advice
    assert "need 1.00 s at 244 MB/s" in found.answer
    assert judge(exchanged(network_s=0.01)).advice == ""


def test_an_exchange_slower_than_its_link_has_another_cause_too() -> None:
    found = judge(exchanged(network_s=1.0, links=(link(1.2e9),)))

    assert found.verdict == "yes"
    assert "something else slows the exchange" in found.answer


def test_an_imported_run_is_judged_by_arithmetic() -> None:
    assert "by arithmetic" in judge(imported(gpus=4, hosts=2, observed_nic_bytes_per_s=220e6)).answer
