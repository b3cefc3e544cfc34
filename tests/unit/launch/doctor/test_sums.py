from dataclasses import replace

import pytest
from tests.unit.launch.doctor.findings import mesh

from tandem.launch.doctor.facts import SumFacts
from tandem.launch.doctor.sums import choose_members


def test_all_hosts_take_part_where_all_connections_are_open() -> None:
    assert choose_members("abc", list(mesh().values())) == ["a", "b", "c"]


def test_a_host_that_the_others_cannot_reach_is_left_out() -> None:
    links = [
        replace(each, fresh_port="timed out") if pair[1] == "a" else each for pair, each in mesh().items()
    ]
    assert choose_members("abc", links) == ["b", "c"]


def test_a_host_without_any_link_is_left_out() -> None:
    assert choose_members("abcd", list(mesh("abc").values())) == ["a", "b", "c"]


def test_bus_speed_and_step_time_follow_from_bytes_and_seconds() -> None:
    sums = SumFacts(
        hosts=("a", "b", "c", "d"),
        left_out=(),
        device="cpu",
        gradient_bytes=400,
        summed_bytes=100,
        seconds=2.0,
    )
    assert sums.bus_bytes_per_s == pytest.approx(75.0)
    assert sums.step_s == pytest.approx(8.0)
