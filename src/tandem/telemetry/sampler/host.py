"""All that is looked at on a host, put together."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tandem.runlog.event import HostDescribed, HostSampled
from tandem.telemetry.sampler.disk import Disk, DiskFacts, DiskSample
from tandem.telemetry.sampler.gpus import GpuFacts, Gpus, GpuSample
from tandem.telemetry.sampler.machine import Machine, MachineFacts, MachineSample
from tandem.telemetry.sampler.network import Network, NetworkFacts, NetworkSample

__all__ = ["Host"]

_Told = TypeVar("_Told")

_SHORTEST_S = 1e-3
_NO_GPU_FACTS = GpuFacts(gpus=(), gpu_memory_bytes=(), gpu_power_limit_w=())
_NO_GPU_SAMPLE = GpuSample(
    gpu_utilisation=(),
    gpu_memory_bytes=(),
    gpu_power_w=(),
    gpu_clock_mhz=(),
    gpu_temperature_c=(),
    gpu_throttled=(),
)
_NO_DISK_SAMPLE = DiskSample(
    disk_free_bytes=-1, disk_read_bytes_per_s=math.nan, disk_written_bytes_per_s=math.nan
)
_NO_NETWORK_SAMPLE = NetworkSample(
    received_bytes_per_s=(), sent_bytes_per_s=(), packets_per_s=(), dropped=(), retransmitted=-1
)


class Host:
    """One host, looked at from time to time."""

    def __init__(self, run: Path, *, gpus: Sequence[str]) -> None:
        """The folder of the run says which disk matters, the UUIDs which GPUs."""
        self._machine, self._disk = Machine(), Disk(run)
        self._gpus, self._network = Gpus(gpus), Network()
        self._looked_s = time.monotonic()

    def describe(self) -> HostDescribed:
        """What there is, in the order of the samples; a part that fails is not known."""
        return HostDescribed(
            **_told(self._machine.describe, MachineFacts(cores=-1, memory_bytes=-1)),
            **_told(self._disk.describe, DiskFacts(disk="")),
            **_told(self._gpus.describe, _NO_GPU_FACTS),
            **_told(self._network.describe, NetworkFacts(interfaces=(), interface_bits_per_s=())),
        )

    def sample(self) -> HostSampled:
        """What was done since the last look; a part that fails is not known."""
        now_s = time.monotonic()
        seconds, self._looked_s = max(now_s - self._looked_s, _SHORTEST_S), now_s
        return HostSampled(
            seconds=round(seconds, 6),
            **_told(self._machine.sample, MachineSample(cpu=math.nan, memory_bytes=-1)),
            **_told(lambda: self._disk.sample(seconds), _NO_DISK_SAMPLE),
            **_told(self._gpus.sample, _NO_GPU_SAMPLE),
            **_told(lambda: self._network.sample(seconds), _NO_NETWORK_SAMPLE),
        )


def _told(look: Callable[[], _Told], unknown: _Told) -> _Told:
    try:
        return look()
    except Exception:  # noqa: BLE001 - what one part cannot tell must not silence the others
        return unknown
