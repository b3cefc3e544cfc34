"""Events about the hosts of a run and the links between them."""

from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = ["HostExamined", "LinkMeasured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostExamined(Event):
    """A host was looked at before training."""

    host: str
    """As the command line names it."""
    address: str
    interface: str
    """That holds the address; empty where none does."""
    interface_bits_per_s: int
    """As agreed with the switch; 0 where it is not known."""
    tandem: str
    python: str
    torch: str
    cores: int
    memory_bytes: int
    gpus: tuple[str, ...]
    gpu_memory_bytes: int
    """Of the smallest GPU; 0 without one."""
    clock_offset_s: float
    """Against the clock of the host that writes this; positive where it is ahead."""
    clock_uncertainty_s: float
    disk_free_bytes: int
    disk_write_bytes_per_s: float
    """nan where nothing could be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMeasured(Event):
    """One direction between two hosts was measured before training."""

    sender: str
    receiver: str
    connection: str
    """`open`, `refused`, `timed out`, `no route`, or `taken` by another program."""
    latency_s: float
    """There and back, the median; this and what follows is nan where it was not measured."""
    bytes_per_s: float
    """Of one TCP stream, as it arrives."""
    loss: float
    """Share of paced datagrams that did not arrive."""
    datagrams: int
    """How many of them were sent."""
