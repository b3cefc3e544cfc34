from dataclasses import replace

import pytest
from tests.unit.observe.test_shares import CHANGED, mark
from tests.unit.observe.verdicts.exchange_story import REFERENCE, carried, exchanged, imported
from tests.unit.observe.verdicts.series_story import build_probes

from tandem.observe.verdicts.step_network import judge


def test_the_step_is_split_beside_the_bytes_that_were_measured() -> None:
    series = exchanged(network_s=0.5)

    found = judge(replace(series, samples=carried(series, 244e6)))

    assert (found.verdict, found.confidence) == ("measured", "high")
    assert "as the ring predicts" in found.answer
    parts = [each.value for each in found.evidence if each.unit == "s"]
    assert sum(float(part) for part in parts[1:]) == pytest.approx(float(parts[0]), rel=1e-6)


@pytest.mark.parametrize(("carried_bytes", "words"), [(500e6, "other traffic"), (50e6, "another way")])
def test_bytes_that_the_ring_does_not_explain_are_remarked_on(carried_bytes: float, words: str) -> None:
    series = exchanged(network_s=0.5)

    assert words in judge(replace(series, samples=carried(series, carried_bytes))).answer


def test_without_samples_confidence_is_less_and_says_why() -> None:
    found = judge(exchanged())

    assert found.confidence == "medium"
    assert found.missing == ("samples of the interfaces",)


def test_a_cost_that_few_probes_tell_badly_is_not_sure() -> None:
    rows = [(step, rank, 1.6, alone, 0.5) for step, alone in ((20, 1.1), (60, 0.8)) for rank in (0, 1)]
    series = exchanged(network_s=0.5, slowing_s=0.1, probes=build_probes(*rows))

    found = judge(replace(series, samples=carried(series, 244e6)))

    assert (found.verdict, found.confidence) == ("measured", "low")
    assert "the interval" in found.doubt


def test_a_step_that_does_not_vary_teaches_nothing() -> None:
    assert "teaches nothing more" in judge(exchanged()).answer


def test_unequal_shares_are_told_with_the_speeds_of_ranks() -> None:
    series = exchanged()
    shared = replace(series, marks=(*series.marks, *mark(CHANGED)))

    assert "rank 1 25.0 % (2,048 target tokens/s)" in judge(shared).answer
    assert "by their speed" not in judge(series).answer


def test_one_rank_has_its_time_for_itself() -> None:
    found = judge(exchanged(hosts=("alpha",)))

    assert (found.verdict, found.confidence) == ("measured", "high")


def test_ranks_of_one_host_exchange_through_memory() -> None:
    assert "through the memory of their one host" in judge(exchanged(hosts=("alpha", "alpha"))).answer


def test_an_imported_run_is_told_by_the_rate_that_was_seen() -> None:
    found = judge(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("measured", "medium")
    assert "220 MB/s seen come to 365 MB" in found.answer


def test_an_imported_run_without_a_rate_is_arithmetic_alone() -> None:
    found = judge(imported(gpus=4, hosts=2))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "365 MB" in found.answer


def test_an_imported_rate_that_cannot_be_is_no_measurement() -> None:
    found = judge(imported(gpus=4, hosts=2, observed_nic_bytes_per_s=25e6))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "25 MB/s seen cannot be it" in found.answer
    assert all(each.name != "bytes a step, by the rate seen" for each in found.evidence)


def test_an_imported_run_on_one_host_crossed_no_network() -> None:
    assert "crossed no network" in judge(imported(gpus=4, hosts=1)).answer


def test_without_phases_nothing_is_told() -> None:
    assert judge(exchanged(steps=3)).verdict == "cannot tell"


def test_no_link_is_spoken_of_where_it_is_not_known_that_there_are_several_hosts() -> None:
    series = exchanged()
    found = judge(replace(series, ranks=replace(series.ranks, hosts=("alpha", ""))))

    assert "through each host's link" not in found.answer
    assert "is not known" in found.answer
