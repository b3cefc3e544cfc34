"""What an examination finds out: numbers and names, no opinions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

__all__ = [
    "OPEN",
    "SILENT",
    "Clock",
    "Disk",
    "Gpu",
    "HostFacts",
    "LinkFacts",
    "Listening",
    "Machine",
    "Nic",
    "Outcome",
    "SumFacts",
]

Outcome = Literal["open", "no answer", "refused", "timed out", "no route", "taken"]
"""Of an attempt to connect.

`no answer`: somebody listens, but says nothing; `taken`: another program has the port, and nothing was tried.
"""
OPEN: Outcome = "open"
SILENT: Outcome = "no answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    memory_bytes: int
    driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A network interface with an address."""

    name: str
    address: str
    bits_per_s: int
    """As its driver claims, which need not be what the link carries; 0 where it does not say."""
    mtu: int
    """The longest packet, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The disk that a folder is on."""

    folder: str
    """The folder, or the nearest one above it that exists."""
    free_bytes: int
    write_bytes_per_s: float
    """Until it was surely on the disk; nan if nothing could be written."""
    problem: str
    """Why nothing could be written; empty if it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a host says of itself."""

    name: str
    tandem: str
    python: str
    torch: str
    """Empty where there is none."""
    cores: int
    memory_bytes: int
    available_bytes: int
    gpus: tuple[Gpu, ...]
    usable_gpus: int
    """Those that torch computes on; as many as there are where that was not tried."""
    gpu_problem: str
    ssh_address: str
    """The address at which ssh reached the host; empty if it was not by ssh."""
    gpu_flops_per_s: tuple[float, ...] = ()
    """Of each GPU that torch computes on, in its order, in products of float16 matrices; empty if not tried."""
    cpu_flops_per_s: float = 0.0
    """Of all cores together, in products of float32 matrices; 0 if not tried, as where there are GPUs."""

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Self:
        """From what the host sent."""
        gpus = tuple(Gpu(**each) for each in held["gpus"])
        speeds = tuple(map(float, held.get("gpu_flops_per_s", ())))
        return cls(**{**held, "gpus": gpus, "gpu_flops_per_s": speeds})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A host's clock against ours."""

    offset_s: float
    """Positive where it is ahead."""
    uncertainty_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What was found out about a host; what is None was not answered."""

    name: str
    """As it was asked for."""
    problem: str = ""
    """Why something is missing, in a sentence."""
    reached_s: float = math.nan
    workers: int = 0
    """Asked for; 0 means all GPUs, or one worker."""
    nic: Nic | None = None
    """At whose address the others look for it."""
    machine: Machine | None = None
    clock: Clock | None = None
    disk: Disk | None = None
    misread: str = ""
    """The version of a Tandem there whose answers are not those of ours; the host is not examined further."""

    @property
    def ranks(self) -> int:
        """How many train there."""
        return self.workers or (self.machine.usable_gpus if self.machine else 0) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """One direction between two hosts; numbers are nan where they were not measured."""

    sender: str
    receiver: str
    fresh_port: Outcome
    """Connecting to a port that was free a moment ago."""
    meeting_port: Outcome
    """Connecting to the port at which ranks meet; the same as `fresh_port` where that may be any."""
    latency_s: float = math.nan
    """There and back, the median."""
    bytes_per_s: float = math.nan
    """Of one TCP stream, as it arrives."""
    loss: float = math.nan
    """Share of datagrams that did not arrive, sent at a fifth of that speed."""
    datagrams: int = 0
    problem: str = ""
    """Why nothing could be measured, though it connects."""

    @property
    def is_open(self) -> bool:
        """Whether the hosts could connect this way: each listens at one port."""
        return self.outcome in {OPEN, SILENT}

    @property
    def answers(self) -> bool:
        """Whether there is a port over which it can be measured."""
        return OPEN in {self.fresh_port, self.meeting_port}

    @property
    def is_silent(self) -> bool:
        """Whether they could, and nothing was heard: as where strangers keep the other host busy."""
        return self.outcome == SILENT

    @property
    def outcome(self) -> Outcome:
        """Of connecting to the meeting port, or to a free one in its place where another program has that."""
        return self.fresh_port if self.meeting_port == "taken" else self.meeting_port


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """What others could connect to on a host while gradients were summed; addresses with ports, and programs."""

    host: str
    mesh: str
    """The one place where the mesh listens; empty on a trusted network."""
    before: Mapping[str, str]
    during: Mapping[str, str]
    """Also what listened for a part of the time."""
    after: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumFacts:
    """Gradients summed over hosts, one worker each."""

    hosts: tuple[str, ...]
    left_out: tuple[str, ...]
    """Hosts that the others cannot connect to."""
    device: str
    gradient_bytes: int
    """Of a whole step."""
    summed_bytes: int = 0
    """At a time in this measurement."""
    seconds: float = math.nan
    problem: str = ""
    listening: tuple["Listening", ...] = ()

    @property
    def bus_bytes_per_s(self) -> float:
        """What a host sends, and receives, a second in the best way to sum."""
        ranks = len(self.hosts)
        return 2 * (ranks - 1) / ranks * self.summed_bytes / self.seconds

    @property
    def step_s(self) -> float:
        """What the gradients of a step take at this speed."""
        return self.seconds * self.gradient_bytes / self.summed_bytes if self.summed_bytes else math.nan
