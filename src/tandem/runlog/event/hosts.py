"""Events about the hosts of a run and the links between them."""

from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = ["HostDescribed", "HostExamined", "HostSampled", "LinkMeasured"]


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
    """`open`, `no answer` (somebody listens), `refused`, `timed out`, `no route`, or `taken` by another program."""
    latency_s: float
    """There and back, the median; this and what follows is nan where it was not measured."""
    bytes_per_s: float
    """Of one TCP stream, as it arrives."""
    loss: float
    """Share of paced datagrams that did not arrive."""
    datagrams: int
    """How many of them were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDescribed(Event):
    """The sampler of a host began; what it samples keeps this order. A whole number that is not known is -1."""

    cores: int
    """That a process may use."""
    memory_bytes: int
    gpus: tuple[str, ...]
    """Names of the GPUs."""
    gpu_memory_bytes: tuple[int, ...]
    gpu_power_limit_w: tuple[float, ...]
    interfaces: tuple[str, ...]
    """Network interfaces; `lo` carries what ranks of one host send each other."""
    interface_bits_per_s: tuple[int, ...]
    """As agreed with the switch; 0 where it is not known."""
    disk: str
    """Device that holds the run folder; empty where it could not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSampled(Event):
    """What a host did in about the last second; lists are in the order of HostDescribed.

    What is not known is nan, in whole numbers -1; a list may be empty where nothing of it is known.
    """

    seconds: float
    """Since the sample before, by the host's own clock."""
    cpu: float
    """Share of all cores that was busy."""
    memory_bytes: int
    """In use, caches not counted."""
    disk_free_bytes: int
    """In the run folder."""
    disk_read_bytes_per_s: float
    disk_written_bytes_per_s: float
    gpu_utilisation: tuple[float, ...]
    """Share of the time in which some kernel ran, waiting ones included."""
    gpu_memory_bytes: tuple[int, ...]
    gpu_power_w: tuple[float, ...]
    gpu_clock_mhz: tuple[float, ...]
    gpu_temperature_c: tuple[float, ...]
    gpu_throttled: tuple[str, ...]
    """Why the clock is held down: `power` is the card's own limit, as usual under load; `heat`, `brake` (the power
    supply's) and `hardware` are faults. Empty where it is not, or the card does not tell."""
    received_bytes_per_s: tuple[float, ...]
    sent_bytes_per_s: tuple[float, ...]
    packets_per_s: tuple[float, ...]
    """Both directions."""
    dropped: tuple[int, ...]
    """Packets that the interface dropped or got damaged in this time, both directions."""
    retransmitted: int
    """TCP segments that the host sent again in this time."""
