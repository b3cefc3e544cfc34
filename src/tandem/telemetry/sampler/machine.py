"""Cores and memory of a host."""

import math
import os
from typing import TypedDict

import psutil

__all__ = ["Machine", "MachineFacts", "MachineSample"]


class MachineFacts(TypedDict):
    """Fields of HostDescribed."""

    cores: int
    memory_bytes: int


class MachineSample(TypedDict):
    """Fields of HostSampled."""

    cpu: float
    memory_bytes: int


class Machine:
    """The cores that processes here may use, and the memory."""

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._share()

    def describe(self) -> MachineFacts:
        """How much there is."""
        return {"cores": len(self._cores), "memory_bytes": psutil.virtual_memory().total}

    def sample(self) -> MachineSample:
        """How busy the cores were since the last look, and what is in use now."""
        memory = psutil.virtual_memory()
        return {"cpu": self._share(), "memory_bytes": memory.total - memory.available}

    def _share(self) -> float:
        busy = psutil.cpu_percent(percpu=True)
        # Cores have no gaps in their numbers unless one is switched off; then all that are on are counted.
        ours = [busy[core] for core in self._cores] if self._cores[-1] < len(busy) else busy
        return round(sum(ours) / len(ours) / 100, 4) if ours else math.nan
