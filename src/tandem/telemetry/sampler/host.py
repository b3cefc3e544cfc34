"""All that is looked at on a host, put together."""

import time
from collections.abc import Sequence
from pathlib import Path

from tandem.runlog.event import HostDescribed, HostSampled
from tandem.telemetry.sampler.disk import Disk
from tandem.telemetry.sampler.gpus import Gpus
from tandem.telemetry.sampler.machine import Machine
from tandem.telemetry.sampler.network import Network

__all__ = ["Host"]

_SHORTEST_S = 1e-3


class Host:
    """One host, looked at from time to time."""

    def __init__(self, run: Path, *, gpus: Sequence[str]) -> None:
        """The folder of the run says which disk matters, the UUIDs which GPUs."""
        self._machine, self._disk = Machine(), Disk(run)
        self._gpus, self._network = Gpus(gpus), Network()
        self._looked_s = time.monotonic()

    def describe(self) -> HostDescribed:
        """What there is, in the order of the samples."""
        return HostDescribed(
            **self._machine.describe(),
            **self._disk.describe(),
            **self._gpus.describe(),
            **self._network.describe(),
        )

    def sample(self) -> HostSampled:
        """What was done since the last look."""
        now_s = time.monotonic()
        seconds, self._looked_s = max(now_s - self._looked_s, _SHORTEST_S), now_s
        return HostSampled(
            seconds=round(seconds, 6),
            **self._machine.sample(),
            **self._disk.sample(seconds),
            **self._gpus.sample(),
            **self._network.sample(seconds),
        )
