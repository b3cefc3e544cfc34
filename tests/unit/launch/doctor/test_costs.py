"""What weak parts add to a step, by arithmetic."""

from dataclasses import replace

import pytest

from tandem.launch.doctor.costs import added_by_disk, added_by_gpu, added_by_link, exchange_s
from tandem.launch.doctor.needs import Needs

NEEDS = replace(
    Needs.of(None), gradient_bytes=10**8, checkpoint_bytes=10**9, step_flops=4e14, checkpoint_steps=50
)


@pytest.mark.parametrize(("hosts", "seconds"), [(2, 1.0), (4, 1.5), (100, 1.98)])
def test_a_ring_sends_nearly_twice_the_gradients(hosts: int, seconds: float) -> None:
    assert exchange_s(NEEDS, hosts=hosts, bytes_per_s=1e8) == pytest.approx(seconds)


def test_a_link_adds_what_it_takes_beyond_the_fastest() -> None:
    step_s, said = added_by_link(NEEDS, hosts=2, slow=2e6, fast=1e8)
    assert step_s == pytest.approx(49)
    assert said.endswith("49 s more a step, where no computing hides it")


def test_a_disk_adds_its_part_of_a_checkpoint_and_nothing_where_nobody_says_how_often() -> None:
    assert added_by_disk(NEEDS, slow=1e7, fast=1e8)[0] == pytest.approx((100 - 10) / 50)
    step_s, said = added_by_disk(replace(NEEDS, checkpoint_steps=0), slow=1e7, fast=1e8)
    assert (step_s, "takes 100 s to write" in said, "a step" in said) == (0.0, True, False)


def test_a_gpu_adds_what_its_part_of_the_operations_takes_longer() -> None:
    assert added_by_gpu(NEEDS, ranks=4, slow=1e14, fast=2e14)[0] == pytest.approx(0.5)
    assert added_by_gpu(replace(NEEDS, step_flops=0.0), ranks=4, slow=1e14, fast=2e14)[0] == 0


def test_the_fastest_adds_nothing() -> None:
    assert added_by_link(NEEDS, hosts=2, slow=1e8, fast=1e8)[0] == 0
