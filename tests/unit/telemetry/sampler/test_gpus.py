import math
from types import SimpleNamespace
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest
import torch

from tandem.telemetry.sampler.gpus import Gpus


class Driver:
    """A driver of two GPUs, the second of which tells little."""

    def __init__(
        self, *, is_there: bool = True, throttled: int = 0, lost: int | None = None, has_memory: bool = True
    ) -> None:
        self._is_there, self._reasons = is_there, throttled
        self._lost, self._has_memory = lost, has_memory

    def __getattr__(self, name: str) -> Any:
        return getattr(pynvml, name)

    def nvmlInit(self) -> None:
        if not self._is_there:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == self._lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetUUID(self, gpu: int) -> str | bytes:
        return ("GPU-aaaa", b"GPU-bbbb")[gpu]

    def nvmlDeviceGetName(self, gpu: int) -> str:
        return ("Alpha", "Beta")[gpu]

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> Any:
        if not self._has_memory:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=1000 + gpu, used=10 + gpu)

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> Any:
        self._refuse(gpu)
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> int:
        self._refuse(gpu)
        return 300_000

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:
        self._refuse(gpu)
        return 212_500

    def nvmlDeviceGetClockInfo(self, _gpu: int, kind: int) -> int:
        return {pynvml.NVML_CLOCK_SM: 1380}[kind]

    def nvmlDeviceGetTemperature(self, _gpu: int, kind: int) -> int:
        return {pynvml.NVML_TEMPERATURE_GPU: 61}[kind]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu: int) -> int:
        self._refuse(gpu)
        return self._reasons

    def _refuse(self, gpu: int) -> None:
        if gpu == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_gpus_are_told_in_the_order_of_the_ranks_that_use_them_and_others_are_not() -> None:
    assert Gpus(["bbbb", "aaaa"], nvml=Driver()).describe()["gpus"] == ("Beta", "Alpha")
    assert Gpus(["bbbb"], nvml=Driver()).describe()["gpus"] == ("Beta",)
    assert Gpus([], nvml=Driver()).describe()["gpus"] == ()


def test_gpus_that_the_driver_does_not_know_are_not_replaced_by_those_of_others() -> None:
    assert Gpus(["cccc"], nvml=Driver()).describe()["gpus"] == ()


def test_a_card_that_fell_off_the_bus_does_not_hide_the_others() -> None:
    assert Gpus(["aaaa", "bbbb"], nvml=Driver(lost=0)).describe()["gpus"] == ("Beta",)


def test_units_are_those_of_the_run_log() -> None:
    gpus = Gpus(["aaaa"], nvml=Driver())
    assert gpus.describe() == {
        "gpus": ("Alpha",),
        "gpu_memory_bytes": (1000,),
        "gpu_power_limit_w": (300.0,),
    }
    assert gpus.sample() == {
        "gpu_utilisation": (0.97,),
        "gpu_memory_bytes": (10,),
        "gpu_power_w": (212.5,),
        "gpu_clock_mhz": (1380.0,),
        "gpu_temperature_c": (61.0,),
        "gpu_throttled": ("",),
    }


def test_what_a_card_does_not_tell_is_not_known_and_the_rest_is() -> None:
    sample = Gpus(["bbbb"], nvml=Driver()).sample()
    assert math.isnan(sample["gpu_utilisation"][0])
    assert math.isnan(sample["gpu_power_w"][0])
    assert sample["gpu_throttled"] == ("",)
    assert sample["gpu_clock_mhz"] == (1380.0,)


def test_memory_that_is_not_told_is_no_empty_memory() -> None:
    gpus = Gpus(["aaaa"], nvml=Driver(has_memory=False))
    assert gpus.describe()["gpu_memory_bytes"] == (-1,)
    assert gpus.sample()["gpu_memory_bytes"] == (-1,)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SwPowerCap", "power"),
        ("HwPowerBrakeSlowdown", "brake"),
        ("SwThermalSlowdown", "heat"),
        ("HwThermalSlowdown", "heat"),
        ("HwSlowdown", "hardware"),
        ("GpuIdle", ""),
    ],
)
def test_a_clock_that_is_held_down_says_why(name: str, told: str) -> None:
    reason = getattr(pynvml, f"nvmlClocksThrottleReason{name}")
    assert Gpus(["aaaa"], nvml=Driver(throttled=reason)).sample()["gpu_throttled"] == (told,)


def test_without_a_driver_there_are_no_gpus() -> None:
    gpus = Gpus(["aaaa"], nvml=Driver(is_there=False))
    assert gpus.describe()["gpus"] == ()
    assert gpus.sample()["gpu_utilisation"] == ()


@pytest.mark.gpu
def test_a_real_gpu_is_found_by_the_uuid_that_torch_knows_it_by() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    properties = torch.cuda.get_device_properties(0)
    gpus = Gpus([str(properties.uuid)])
    facts, sample = gpus.describe(), gpus.sample()
    assert facts["gpus"] == (properties.name,)
    assert facts["gpu_memory_bytes"][0] == pytest.approx(properties.total_memory, rel=0.05)
    assert 0 <= sample["gpu_utilisation"][0] <= 1
    assert 0 < sample["gpu_memory_bytes"][0] < facts["gpu_memory_bytes"][0]
    assert sample["gpu_temperature_c"][0] > 0
