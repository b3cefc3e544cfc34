"""Facts of healthy hosts, for tests to spoil one of."""

from collections.abc import Sequence
from itertools import permutations

from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import Clock, Disk, Gpu, HostFacts, LinkFacts, Machine, Nic, SumFacts
from tandem.launch.doctor.needs import Needs

GPU = Gpu(name="H200", memory_bytes=140 * 10**9, driver="570.1")
MACHINE = Machine(
    name="a",
    tandem="0.1.0",
    python="3.11.9",
    torch="2.13.0+cpu",
    cores=8,
    memory_bytes=64 * 10**9,
    available_bytes=60 * 10**9,
    gpus=(),
    usable_gpus=0,
    gpu_problem="",
    ssh_address="10.0.0.1",
)
DISK = Disk(folder="/work", free_bytes=10**12, write_bytes_per_s=5e8, problem="")
NIC = Nic(name="eth0", address="10.0.0.1", bits_per_s=10**9, mtu=1500)


def host(
    name: str = "a",
    *,
    machine: Machine | None = MACHINE,
    disk: Disk | None = DISK,
    nic: Nic | None = NIC,
    clock: Clock | None = None,
    problem: str = "",
    reached_s: float = 0.5,
    workers: int = 0,
) -> HostFacts:
    return HostFacts(
        name=name,
        machine=machine,
        disk=disk,
        nic=nic,
        clock=clock or Clock(offset_s=0.001, uncertainty_s=0.002),
        problem=problem,
        reached_s=reached_s,
        workers=workers,
    )


def link(sender: str = "a", receiver: str = "b", *, bytes_per_s: float = 1e8, loss: float = 0.0) -> LinkFacts:
    return LinkFacts(
        sender=sender,
        receiver=receiver,
        fresh_port="open",
        meeting_port="open",
        latency_s=1e-4,
        bytes_per_s=bytes_per_s,
        loss=loss,
        datagrams=2000,
    )


def mesh(names: str = "abc") -> dict[tuple[str, str], LinkFacts]:
    return {pair: link(*pair) for pair in permutations(names, 2)}


def examination(
    hosts: Sequence[HostFacts] = (),
    links: Sequence[LinkFacts] = (),
    *,
    sums: SumFacts | None = None,
    needs: Needs | None = None,
) -> Examination:
    return Examination(
        hosts=tuple(hosts),
        links=tuple(links),
        sums=sums,
        needs=needs or Needs.of(None),
        port=29400,
        tandem="0.1.0",
    )
