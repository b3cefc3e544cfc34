from typing import Any

import pytest
from tests.unit.observe.verdicts.exchange_story import REFERENCE, imported

from tandem.observe.verdicts.imported_network import judge_imported


def test_the_reference_run_was_network_bound_and_the_arithmetic_is_shown() -> None:
    found = judge_imported(imported(**REFERENCE))

    assert (found.verdict, found.confidence) == ("yes", "medium")
    for part in (
        "60,880,896",
        "365 MB",
        "1.66 s",
        "one direction",
        "110 MB/s each way carry only 183 MB",
        "100 % proves nothing",
    ):
        assert part in found.answer


def test_a_rate_over_the_ordered_link_is_explained() -> None:
    found = judge_imported(imported(**REFERENCE, observed_link_bits_per_s=1e9))

    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert "more than the 1 Gb/s ordered" in found.answer
    assert "either way the link explains the step" in found.answer


def test_a_rate_that_fills_no_common_link_proves_nothing() -> None:
    found = judge_imported(imported(gpus=4, hosts=2, step_s=0.8, observed_nic_bytes_per_s=456e6))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "computing sets the pace" in found.answer


@pytest.mark.parametrize(
    ("bits", "verdict", "confidence"),
    [
        (1e8, "cannot tell", "none"),
        (1e9, "yes", "low"),
        (2e9, "yes", "medium"),
        (4e9, "cannot tell", "none"),
        (10e9, "cannot tell", "none"),
        (100e9, "no", "low"),
    ],
)
def test_the_speed_of_the_link_bounds_what_a_faster_one_saves(
    bits: float, verdict: str, confidence: str
) -> None:
    found = judge_imported(imported(gpus=4, hosts=2, observed_link_bits_per_s=bits))

    assert (found.verdict, found.confidence) == (verdict, confidence)


def test_without_any_rate_common_links_are_shown_for_both_precisions() -> None:
    found = judge_imported(imported(gpus=4, hosts=2, precision="mixed"))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "2.92 s or 1.46 s at 1 Gb/s" in found.answer
    assert {"exchange at 1 Gb/s", "exchange at 10 Gb/s", "exchange at 25 Gb/s"} <= {
        each.name for each in found.evidence
    }
    assert found.advice


def test_mixed_precision_says_how_either_size_fits_the_rate() -> None:
    found = judge_imported(imported(**REFERENCE, precision="mixed"))

    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert "as fp16 only if both directions" in found.answer


def test_one_gpu_and_one_host_use_no_network() -> None:
    assert judge_imported(imported(gpus=1)).verdict == "no"
    assert judge_imported(imported(gpus=4, hosts=1)).verdict == "no"


def test_what_is_not_known_is_named() -> None:
    found = judge_imported(imported(ranks=0))

    assert found.verdict == "cannot tell"
    assert "number of GPUs" in found.answer


def test_a_link_too_slow_for_the_bytes_is_full_and_was_faster_than_told() -> None:
    found = judge_imported(
        imported(gpus=4, hosts=2, step_s=1.685, observed_link_bits_per_s=1e9, gradient_precision="fp32")
    )

    assert (found.verdict, found.confidence) == ("yes", "low")
    for part in (
        "2.92 s",
        "longer than the step of 1.69 s",
        "at least 1.73 Gb/s in each direction",
        "fewer bytes",
    ):
        assert part in found.answer
    assert "the link's speed" in found.missing
    assert "low confidence" in found.would_change


def test_a_link_that_carries_a_tenth_of_the_bytes_is_not_the_one_between_the_hosts() -> None:
    found = judge_imported(imported(gpus=4, hosts=2, observed_link_bits_per_s=1e8))

    assert "cannot be the one between the hosts" in found.answer


def test_a_rate_too_low_for_the_bytes_carries_no_verdict_and_its_likely_reading_is_named() -> None:
    found = judge_imported(imported(gpus=4, hosts=2, step_s=1.685, observed_nic_bytes_per_s=25e6))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    for part in (
        "25 MB/s seen cannot be it",
        "need 217 MB/s in each direction",
        "200 MB/s would be about right",
    ):
        assert part in found.answer
    assert "What would tell" in found.answer
    assert all(each.name != "exchange at the rate seen" for each in found.evidence)


def test_two_figures_that_both_contradict_the_bytes_leave_no_verdict() -> None:
    found = judge_imported(
        imported(gpus=4, hosts=2, observed_nic_bytes_per_s=25e6, observed_link_bits_per_s=1e9)
    )

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "contradict one another" in found.answer
    assert "took 20.0 % of the step" in found.answer


def test_a_rate_too_low_lowers_the_trust_in_a_link_that_fits() -> None:
    told: dict[str, Any] = {"gpus": 4, "hosts": 2, "observed_link_bits_per_s": 2e9}

    assert judge_imported(imported(**told, observed_nic_bytes_per_s=25e6)).confidence == "low"
    assert judge_imported(imported(**told, observed_nic_bytes_per_s=220e6)).confidence == "medium"


def test_a_rate_far_over_the_link_told_makes_the_rate_alone_count() -> None:
    found = judge_imported(
        imported(gpus=4, hosts=2, observed_nic_bytes_per_s=450e6, observed_link_bits_per_s=1e9)
    )

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "more than the gradients need" in found.answer


def test_hosts_that_nobody_counted_are_said_to_be_assumed() -> None:
    found = judge_imported(imported(gpus=4, observed_nic_bytes_per_s=220e6))

    assert (found.verdict, found.confidence) == ("yes", "low")
    assert "which the files do not say" in found.answer
