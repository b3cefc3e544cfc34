"""The GPUs of a run on a host, as the driver tells of them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar

import pynvml  # type: ignore[import-untyped]

__all__ = ["GpuFacts", "GpuSample", "Gpus"]

_Answer = TypeVar("_Answer")

_MOST_GPUS = 16
_MILLI = 1000
_REASONS = (
    ("heat", "SwThermalSlowdown"),
    ("heat", "HwThermalSlowdown"),
    ("brake", "HwPowerBrakeSlowdown"),
    ("hardware", "HwSlowdown"),
    ("power", "SwPowerCap"),
)
"""What holds a clock down, by the driver's names; the first that is so is told, faults before the usual."""


class GpuFacts(TypedDict):
    """Fields of HostDescribed."""

    gpus: tuple[str, ...]
    gpu_memory_bytes: tuple[int, ...]
    gpu_power_limit_w: tuple[float, ...]


class GpuSample(TypedDict):
    """Fields of HostSampled."""

    gpu_utilisation: tuple[float, ...]
    gpu_memory_bytes: tuple[int, ...]
    gpu_power_w: tuple[float, ...]
    gpu_clock_mhz: tuple[float, ...]
    gpu_temperature_c: tuple[float, ...]
    gpu_throttled: tuple[str, ...]


class Gpus:
    """GPUs by their UUIDs, in that order; what a card does not tell is nan, -1 or empty."""

    def __init__(self, uuids: Sequence[str], *, nvml: Any = pynvml) -> None:
        """Without UUIDs there are no GPUs, nor where the driver is missing."""
        self._nvml = nvml
        self._handles = self._find(uuids) if uuids else []

    def describe(self) -> GpuFacts:
        """Names, memory and the most power that they may draw."""
        nvml = self._nvml
        return {
            "gpus": self._each(lambda gpu: _text(nvml.nvmlDeviceGetName(gpu)), "GPU"),
            "gpu_memory_bytes": self._each(lambda gpu: int(nvml.nvmlDeviceGetMemoryInfo(gpu).total), -1),
            "gpu_power_limit_w": self._each(
                lambda gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / _MILLI, math.nan
            ),
        }

    def sample(self) -> GpuSample:
        """What they do now; utilisation is over the driver's own window, a second at most."""
        nvml = self._nvml
        return {
            "gpu_utilisation": self._each(
                lambda gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100, math.nan
            ),
            "gpu_memory_bytes": self._each(lambda gpu: int(nvml.nvmlDeviceGetMemoryInfo(gpu).used), -1),
            "gpu_power_w": self._each(lambda gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / _MILLI, math.nan),
            "gpu_clock_mhz": self._each(
                lambda gpu: float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)), math.nan
            ),
            "gpu_temperature_c": self._each(
                lambda gpu: float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)), math.nan
            ),
            "gpu_throttled": self._each(self._throttled, ""),
        }

    def _find(self, uuids: Sequence[str]) -> list[Any]:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError:
            return []
        # One card that has fallen off the bus must not hide the others.
        named = [each for number in range(count) if (each := self._ask(self._name, number, None)) is not None]
        # The driver's UUIDs begin with the kind of the device, which others leave out.
        found = [handle for uuid in uuids for name, handle in named if name.endswith(uuid)]
        return found[:_MOST_GPUS]

    def _name(self, number: int) -> tuple[str, Any]:
        handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
        return _text(self._nvml.nvmlDeviceGetUUID(handle)), handle

    def _throttled(self, handle: Any) -> str:
        held = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        for reason, name in _REASONS:
            if held & getattr(self._nvml, f"nvmlClocksThrottleReason{name}"):
                return reason
        return ""

    def _each(self, question: Callable[[Any], _Answer], otherwise: _Answer) -> tuple[_Answer, ...]:
        return tuple(self._ask(question, gpu, otherwise) for gpu in self._handles)

    def _ask(self, question: Callable[[Any], _Answer], gpu: Any, otherwise: _Answer) -> _Answer:
        try:
            return question(gpu)
        except self._nvml.NVMLError:
            return otherwise


def _text(held: str | bytes) -> str:
    return held.decode() if isinstance(held, bytes) else held
