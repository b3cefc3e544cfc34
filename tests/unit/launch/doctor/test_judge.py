from dataclasses import replace

import pytest
from tests.unit.launch.doctor.findings import DISK, GPU, MACHINE, NIC, examination, host, link

from tandem.launch.doctor.facts import Clock, HostFacts
from tandem.launch.doctor.judge import judge
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs

NAN = float("nan")
NEEDS = Needs.of(None)


def bad(*hosts: HostFacts) -> list[Line]:
    return [line for line in judge(examination(hosts)) if line.verdict != "fine"]


def test_healthy_hosts_are_fine_in_every_line() -> None:
    lines = judge(examination([host("a"), host("b")]))
    assert {line.verdict for line in lines} == {"fine"}
    what = ["ssh", "versions", "clock", "GPUs", "computer", "disk", "disk speed", "network"]
    assert [line.what for line in lines if line.host == "b"] == what
    assert all(not line.cure for line in lines)


def test_another_tandem_than_here_is_broken_and_both_versions_are_named() -> None:
    (line,) = bad(host("a"), host("b", machine=replace(MACHINE, tandem="0.0.9")))
    assert (line.host, line.what, line.verdict) == ("b", "versions", "broken")
    assert "b has Tandem 0.0.9, this machine 0.1.0" in line.cure


@pytest.mark.parametrize("torch", ["2.12.0+cpu", "2.13.0+cu128", "2.13.0"])
def test_another_torch_than_most_is_broken_and_so_is_another_build(torch: str) -> None:
    (line,) = bad(host("a"), host("b"), host("c", machine=replace(MACHINE, torch=torch)))
    assert (line.host, line.what, line.verdict) == ("c", "versions", "broken")
    assert f"c has torch {torch}, the others 2.13.0+cpu" in line.cure


def test_a_host_whose_answers_cannot_be_read_is_told_with_both_versions() -> None:
    strange = replace(host("b", machine=None, disk=None, nic=None), clock=None, misread="0.0.9")
    (line,) = bad(host("a"), strange)
    assert (line.host, line.what, line.verdict) == ("b", "versions", "broken")
    assert "Tandem 0.0.9 on b" in line.cure
    assert "0.1.0 here" in line.cure


def test_another_python_is_poor_but_another_patch_is_not() -> None:
    other, patch = replace(MACHINE, python="3.12.1"), replace(MACHINE, python="3.11.2")
    (line,) = bad(host("a"), host("b", machine=patch), host("c", machine=other))
    assert (line.host, line.what, line.verdict) == ("c", "versions", "poor")


@pytest.mark.parametrize(
    ("offset_s", "uncertainty_s", "poor"), [(-3, 0.1, 1), (0.3, 0.1, 1), (0.1, 0.05, 0), (3, 2.95, 0)]
)
def test_a_clock_that_is_surely_a_tenth_of_a_second_off_is_poor(
    offset_s: float, uncertainty_s: float, poor: int
) -> None:
    found = bad(host(clock=Clock(offset_s=offset_s, uncertainty_s=uncertainty_s)))
    assert [(line.what, line.verdict) for line in found] == [("clock", "poor")] * poor
    assert all(
        f"stands {abs(offset_s) * 1e3:.3g} ms" in line.cure or "stands 3 s" in line.cure for line in found
    )


def test_gpus_of_different_kinds_are_poor() -> None:
    usual = replace(MACHINE, gpus=(GPU, GPU), usable_gpus=2)
    strange = replace(MACHINE, gpus=(replace(GPU, name="L4"),), usable_gpus=1)
    (line,) = bad(host("a", machine=usual), host("b", machine=strange))
    assert (line.host, line.verdict) == ("b", "poor")
    assert "b has L4, most others H200" in line.cure


def test_gpus_that_torch_cannot_use_are_broken() -> None:
    machine = replace(MACHINE, gpus=(GPU,), usable_gpus=0, gpu_problem="driver too old")
    (line,) = bad(host(machine=machine))
    assert (line.what, line.verdict) == ("GPUs", "broken")
    assert "0 of 1 GPUs (driver too old)" in line.cure


def test_a_host_without_gpus_among_others_with_them_is_poor() -> None:
    (line,) = bad(host("a", machine=replace(MACHINE, gpus=(GPU,), usable_gpus=1)), host("b"))
    assert (line.host, line.what, line.verdict) == ("b", "GPUs", "poor")


def test_a_disk_that_cannot_be_written_is_broken() -> None:
    disk = replace(DISK, problem="Read-only file system", write_bytes_per_s=NAN)
    (line,) = bad(host(disk=disk))
    assert (line.what, line.verdict) == ("disk", "broken")
    assert "Read-only file system" in line.cure


@pytest.mark.parametrize(("checkpoints", "verdict"), [(0.5, "broken"), (1.5, "poor")])
def test_a_disk_with_too_little_room_for_checkpoints_is_told_of(checkpoints: float, verdict: str) -> None:
    needed = examination().needs.checkpoint_bytes
    (line,) = bad(host(disk=replace(DISK, free_bytes=int(checkpoints * needed))))
    assert (line.what, line.verdict) == ("disk", verdict)


def test_a_disk_that_writes_slowly_is_poor() -> None:
    (line,) = bad(host(disk=replace(DISK, write_bytes_per_s=1e6)))
    assert (line.what, line.verdict) == ("disk speed", "poor")


def test_a_disk_far_below_its_twin_is_poor_with_what_it_adds_to_a_step() -> None:
    needs = replace(NEEDS, checkpoint_bytes=10**9, disk_bytes=2 * 10**9, checkpoint_steps=100)
    slow = host("b", disk=replace(DISK, write_bytes_per_s=5e7))
    lines = judge(examination([host("a"), slow], needs=needs))
    (line,) = [line for line in lines if line.verdict != "fine"]
    assert (line.host, line.what, line.verdict) == ("b", "disk speed", "poor")
    assert line.step_s == pytest.approx((20 - 2) / 100)
    assert (
        "(1.0 GB) takes 20 s to write, 2 s at 500.0 MB/s: 180 ms more a step, with one every 100" in line.cure
    )


def test_a_disk_half_as_fast_as_its_twin_is_left_alone() -> None:
    assert not bad(host("a"), host("b", disk=replace(DISK, write_bytes_per_s=2e8)))


@pytest.mark.parametrize(("speed", "poor"), [(0.9, False), (0.5, True)])
def test_a_gpu_clearly_below_its_twins_is_poor_with_what_it_adds_to_a_step(speed: float, poor: bool) -> None:
    fast = replace(MACHINE, gpus=(GPU, GPU), usable_gpus=2, gpu_flops_per_s=(6e14, 6e14))
    slow = replace(fast, gpu_flops_per_s=(6e14, speed * 6e14))
    needs = replace(NEEDS, step_flops=2.4e15)
    hosts = [host("a", machine=fast, workers=2), host("b", machine=slow, workers=2)]
    lines = [line for line in judge(examination(hosts, needs=needs)) if line.what == "GPU speed"]
    assert [line.verdict for line in lines] == ["fine", "poor" if poor else "fine"]
    assert lines[1].step_s == (pytest.approx(1.0) if poor else 0)
    assert lines[1].cure.startswith("GPU 1 of b computes 300 TFLOP/s, the fastest here 600") == poor


def test_what_a_card_claims_stands_beside_what_its_links_deliver() -> None:
    hosts = [host("a", nic=replace(NIC, bits_per_s=10**10)), host("b", nic=replace(NIC, bits_per_s=0))]
    links = [link("a", "b", bytes_per_s=25e6), link("b", "a", bytes_per_s=30e6)]
    a, b = (line.value for line in judge(examination(hosts, links)) if line.what == "network")
    assert ", delivers 200 Mb/s, nominal 10 Gb/s, packets of" in a
    assert ", delivers 200 Mb/s, packets of" in b
    assert "delivers" not in next(line.value for line in judge(examination(hosts)) if line.what == "network")


def test_a_longest_packet_of_another_length_is_poor() -> None:
    (line,) = bad(host("a"), host("b"), host("c", nic=replace(NIC, mtu=9000)))
    assert (line.host, line.what, line.verdict) == ("c", "network", "poor")


def test_a_host_that_is_not_reached_has_one_line_with_the_reason() -> None:
    gone = host(
        "b", machine=None, disk=None, nic=None, reached_s=NAN, problem="Cannot reach b over ssh: mend it."
    )
    gone = replace(gone, clock=None)
    lines = [line for line in judge(examination([host("a"), gone])) if line.host == "b"]
    assert [(line.what, line.verdict, line.cure) for line in lines] == [
        ("examination", "broken", "Cannot reach b over ssh: mend it.")
    ]
