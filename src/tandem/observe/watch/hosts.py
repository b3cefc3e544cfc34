"""What the hosts of a run did in the last minutes, in bounded memory."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem.observe.clocks import is_fault
from tandem.observe.delivered import LOOPBACK
from tandem.runlog.event import HostDescribed, HostSampled

__all__ = ["HELD_SAMPLES", "Moment", "WatchedHost"]

HELD_SAMPLES = 120
STALE_S = 30.0
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One sample of a host; tuples have a place for each GPU or interface, with nan where a value is not known."""

    time_ns: int
    cpu: float
    """Share of all cores that was busy."""
    memory_bytes: float
    gpu_utilisation: tuple[float, ...]
    gpu_memory_bytes: tuple[float, ...]
    gpu_power_w: tuple[float, ...]
    gpu_temperature_c: tuple[float, ...]
    gpu_throttled: tuple[bool, ...]
    received_bytes_per_s: tuple[float, ...]
    sent_bytes_per_s: tuple[float, ...]


@dataclass(slots=True, kw_only=True)
class WatchedHost:
    """A host and its last samples."""

    name: str
    described: HostDescribed
    """The order of its GPUs and interfaces."""
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=HELD_SAMPLES))
    """The newest is last."""
    highest_bytes_per_s: list[float] = field(default_factory=list)
    """In one direction of each interface in any second so far; empty before the first sample."""

    @property
    def last(self) -> Moment | None:
        """The newest sample."""
        return self.moments[-1] if self.moments else None

    @property
    def busiest(self) -> int | None:
        """The interface to other hosts with the highest rate so far; None before any carried something."""
        outer = [
            (rate, -number)
            for number, (name, rate) in enumerate(
                zip(self.described.interfaces, self.highest_bytes_per_s, strict=False)
            )
            if name != LOOPBACK and rate > 0
        ]
        return -max(outer)[1] if outer else None

    def age_s(self, now_ns: int) -> float | None:
        """Of the newest sample, where that is too old to tell what the host does now."""
        age_s = (now_ns - self.moments[-1].time_ns) / NANO if self.moments else 0.0
        return age_s if age_s > STALE_S else None

    def add(self, time_ns: int, sample: HostSampled) -> None:
        """Take the next sample."""
        gpus, interfaces = len(self.described.gpus), len(self.described.interfaces)
        rates = zip(
            _placed(sample.received_bytes_per_s, interfaces),
            _placed(sample.sent_bytes_per_s, interfaces),
            self.highest_bytes_per_s or [0.0] * interfaces,
            strict=True,
        )
        self.highest_bytes_per_s = [max(before, *map(_finite, pair)) for *pair, before in rates]
        throttled = [is_fault(each) for each in sample.gpu_throttled[:gpus]]
        self.moments.append(
            Moment(
                time_ns=time_ns,
                cpu=sample.cpu,
                memory_bytes=_known(sample.memory_bytes),
                gpu_utilisation=_placed(sample.gpu_utilisation, gpus),
                gpu_memory_bytes=_placed([_known(each) for each in sample.gpu_memory_bytes], gpus),
                gpu_power_w=_placed(sample.gpu_power_w, gpus),
                gpu_temperature_c=_placed(sample.gpu_temperature_c, gpus),
                gpu_throttled=(*throttled, *[False] * (gpus - len(throttled))),
                received_bytes_per_s=_placed(sample.received_bytes_per_s, interfaces),
                sent_bytes_per_s=_placed(sample.sent_bytes_per_s, interfaces),
            )
        )


def _known(count: int) -> float:
    return math.nan if count < 0 else float(count)


def _finite(rate: float) -> float:
    return rate if math.isfinite(rate) else 0.0


def _placed(values: Sequence[float], places: int) -> tuple[float, ...]:
    return (*values[:places], *[math.nan] * (places - len(values)))
