"""How hard the devices of a run worked: operations against their measured peak, memory, power and clocks."""

import math
from dataclasses import dataclass

import numpy as np

from tandem.observe.exchange import Exposure
from tandem.observe.series.columns import HostSamples, Series, Short

__all__ = ["Gauges", "device_name", "flops_utilisation", "is_peak_known", "read_gauges", "tokens_per_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Means over all GPUs and the time of training; nan where it was not sampled."""

    gpus: int
    utilisation: float = math.nan
    memory: float = math.nan
    """Share of the memory in use, on the fullest GPU at its fullest."""
    power: float = math.nan
    """Share of the power limit."""
    throttled: float = math.nan
    """Share of samples in which heat or another fault held the clock down."""
    capped: float = math.nan
    """Share of samples in which the card's own power limit set the clock."""
    capped_clock: float = math.nan
    """The clock in these, of the highest that the same card had."""


def device_name(series: Series) -> str:
    """`cpu`, or the name of the GPU; empty where the log does not tell, as that of rank 0 that is lost."""
    if series.started is not None and series.started.device:
        return series.started.device
    return next((each.device for each in series.devices if each.device), "")


def tokens_per_s(series: Series, exposure: Exposure) -> float:
    """Target tokens a second over the steps that the exposure looks at."""
    places = np.searchsorted(series.steps.step, exposure.split.step)
    spent = float(exposure.split.step_s.sum())
    return float(series.steps.target_tokens[places].sum()) / spent if spent else 0.0


def flops_utilisation(series: Series, exposure: Exposure) -> float:
    """The model's operations a second against what the devices were measured to do; nan where one is not known."""
    started = series.started
    peaks = [each.flops_per_s for each in series.devices if each.flops_per_s > 0]
    if started is None or started.flops_per_target_token <= 0 or not peaks:
        return math.nan
    peak = sum(peaks) / len(peaks) * exposure.ranks
    return started.flops_per_target_token * tokens_per_s(series, exposure) / peak


def is_peak_known(utilisation: float) -> bool:
    """Whether the peak can be right: where more was done, something else kept the devices busy as it was measured."""
    return utilisation <= 1


def read_gauges(series: Series) -> Gauges:
    """What the samplers saw of the GPUs between the first step and the last."""
    steps = series.steps
    hosts = [each for each in series.samples.values() if each.described.gpus] if len(steps) else []
    if not hosts:
        return Gauges(
            gpus=0,
            utilisation=math.nan,
            memory=math.nan,
            power=math.nan,
            throttled=math.nan,
            capped=math.nan,
            capped_clock=math.nan,
        )
    window = float(steps.time_s[0]), float(steps.time_s[-1])
    seen = [each for each in hosts if _inside(each, window).any()]
    return Gauges(
        gpus=sum(len(each.described.gpus) for each in hosts),
        utilisation=_mean([each.gpu_utilisation[:, _inside(each, window)] for each in seen]),
        memory=max((_fullest(each) for each in seen), default=math.nan),
        power=_mean([_power(each)[:, _inside(each, window)] for each in seen]),
        throttled=_mean([each.gpu_throttled[:, _inside(each, window)].astype(np.float32) for each in seen]),
        capped=_mean([each.gpu_capped[:, _inside(each, window)].astype(np.float32) for each in seen]),
        capped_clock=_mean([_capped_clock(each, _inside(each, window)) for each in seen]),
    )


def _inside(
    samples: HostSamples, window: tuple[float, float]
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray((samples.time_s >= window[0]) & (samples.time_s <= window[1]))


def _capped_clock(samples: HostSamples, inside: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Short:
    """Clocks at the power limit as shares of each card's highest; nan for all other samples."""
    clock = samples.gpu_clock_mhz[:, inside]
    highest = np.nan_to_num(clock).max(axis=1, keepdims=True, initial=0.0)
    shares = clock / np.where(highest > 0, highest, np.nan)
    return np.where(samples.gpu_capped[:, inside], shares, np.nan).astype(np.float32)


def _fullest(samples: HostSamples) -> float:
    used = samples.gpu_memory_bytes
    whole = np.asarray(samples.described.gpu_memory_bytes, np.float64)[:, None]
    shares = (used / np.where(whole > 0, whole, np.nan)).ravel()
    shares = shares[np.isfinite(shares)]
    return float(shares.max()) if len(shares) else math.nan


def _power(samples: HostSamples) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    limits = np.asarray(samples.described.gpu_power_limit_w, np.float64)[:, None]
    return np.asarray(samples.gpu_power_w / np.where(limits > 0, limits, np.nan))


def _mean(parts: "list[np.ndarray[tuple[int, int], np.dtype[np.floating]]]") -> float:
    values = np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan
