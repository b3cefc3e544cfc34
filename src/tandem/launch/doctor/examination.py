"""All that an examination found out, and as facts for the run log."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tandem.launch.doctor.facts import HostFacts, LinkFacts, SumFacts
from tandem.launch.doctor.needs import Needs
from tandem.runlog.event import Event, HostExamined, LinkMeasured

__all__ = ["Examination"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Hosts, the links between them, and what they are wanted for."""

    hosts: tuple[HostFacts, ...]
    links: tuple[LinkFacts, ...]
    sums: SumFacts | None
    """None where nothing was summed."""
    needs: Needs
    port: int
    """At which ranks meet; 0 means any free one."""
    tandem: str
    """The version here."""

    def events(self) -> Iterator[Event]:
        """What was found out, for the run log."""
        for host in self.hosts:
            if host.machine is not None:
                yield _examined(host)
        for link in self.links:
            yield LinkMeasured(
                sender=link.sender,
                receiver=link.receiver,
                connection=link.outcome,
                latency_s=link.latency_s,
                bytes_per_s=link.bytes_per_s,
                loss=link.loss,
                datagrams=link.datagrams,
            )


def _examined(host: HostFacts) -> HostExamined:
    machine, nic, clock, disk = host.machine, host.nic, host.clock, host.disk
    assert machine is not None
    return HostExamined(
        host=host.name,
        address=nic.address if nic else "",
        interface=nic.name if nic else "",
        interface_bits_per_s=nic.bits_per_s if nic else 0,
        tandem=machine.tandem,
        python=machine.python,
        torch=machine.torch,
        cores=machine.cores,
        memory_bytes=machine.memory_bytes,
        gpus=tuple(gpu.name for gpu in machine.gpus),
        gpu_memory_bytes=min((gpu.memory_bytes for gpu in machine.gpus), default=0),
        clock_offset_s=clock.offset_s if clock else math.nan,
        clock_uncertainty_s=clock.uncertainty_s if clock else math.nan,
        disk_free_bytes=disk.free_bytes if disk else 0,
        disk_write_bytes_per_s=disk.write_bytes_per_s if disk else math.nan,
    )
