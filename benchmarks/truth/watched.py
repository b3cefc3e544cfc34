"""What the samplers of a simulated run's hosts saw, once a second."""

from collections.abc import Sequence

import numpy as np
from benchmarks.truth.journal import Journal
from benchmarks.truth.scenario import Scenario
from benchmarks.truth.surroundings import describe_host
from benchmarks.truth.timing import Timing
from numpy.typing import NDArray

from tandem.runlog.event import HostSampled

__all__ = ["write_samples"]

Numbers = NDArray[np.float64]
_OVERHEAD = 1.045
"""Headers and acknowledgements, beside what is sent."""
_MEMORY = 9 * 2**30


def write_samples(
    scenario: Scenario,
    journal: Journal,
    timing: Timing,
    *,
    ends: Numbers,
    pauses: Sequence[tuple[float, float]],
    end_s: float,
    dice: np.random.Generator,
) -> None:
    """Write the samples of all hosts from the beginning of training to the end."""
    hardware = scenario.hardware
    grid = np.arange(np.floor(ends[0] - timing.duration_s[0, 0] - 8.0), end_s, 1.0)
    moved = _moved(scenario, timing, ends, grid)
    is_training = np.interp(grid, *_training(ends, timing, pauses)) > 0.5
    throttled = grid >= np.quantile(ends, min(1.0, scenario.work.throttled_from))
    if scenario.work.throttled_from >= 1.0:
        throttled[:] = False
    for number in range(hardware.hosts):
        host = f"node{number + 1}"
        journal.sample(host, describe_host(scenario), at_s=float(grid[0]) - 0.01)
        _write_host(
            scenario,
            journal,
            host,
            grid=grid,
            moved=moved,
            is_training=is_training,
            throttled=throttled,
            dice=dice,
        )


def _moved(scenario: Scenario, timing: Timing, ends: Numbers, grid: Numbers) -> Numbers:
    """Bytes a second that the ranks of one host send to the next, sample by sample."""
    if scenario.hardware.ranks == 1:
        return np.zeros(len(grid))
    finished = ends - timing.optimizer_s.mean() - timing.other_s.mean()
    begun = np.maximum(finished - timing.sending_s, np.concatenate([[0.0], finished[:-1]]))
    times = np.stack([begun, finished], axis=1).ravel()
    total = scenario.ring_bytes * np.arange(1, len(ends) + 1)
    sums = np.stack([total - scenario.ring_bytes, total], axis=1).ravel()
    return np.diff(np.interp(grid, times, sums), prepend=0.0) * _OVERHEAD


def _training(
    ends: Numbers, timing: Timing, pauses: Sequence[tuple[float, float]]
) -> tuple[Numbers, Numbers]:
    """Corners of a line that is 1 while steps are made and 0 otherwise."""
    corners = [(float(ends[0] - timing.duration_s[0, 0]), 0.0), (float(ends[0]), 1.0)]
    for begun, over in pauses:
        corners += [(begun, 1.0), (begun + 0.01, 0.0), (over - 0.01, 0.0), (over, 1.0)]
    corners.append((float(ends[-1]), 1.0))
    corners.append((float(ends[-1]) + 0.01, 0.0))
    held = np.array(sorted(corners))
    return held[:, 0], held[:, 1]


def _write_host(
    scenario: Scenario,
    journal: Journal,
    host: str,
    *,
    grid: Numbers,
    moved: Numbers,
    is_training: NDArray[np.bool_],
    throttled: NDArray[np.bool_],
    dice: np.random.Generator,
) -> None:
    hardware, link, work = scenario.hardware, scenario.link, scenario.work
    gpus = hardware.ranks_per_host if hardware.gpu else 0
    many = hardware.hosts > 1
    busy = (grid / link.background_s).astype(int) % 2 == 1
    others = link.background * busy * link.bits_per_s / 8 * 0.9 if many else np.zeros(len(grid))
    outside = (moved if many else 0.0) + others + dice.uniform(2e3, 2e4, len(grid))
    inside = (0.0 if many and hardware.ranks_per_host == 1 else moved) + dice.uniform(1e3, 1e4, len(grid))
    # A kernel that waits for the network counts as busy: what a GPU is said to be used is no measure of work.
    used = np.where(is_training, np.clip(dice.normal(0.99, 0.01, len(grid)), 0, 1), 0.35)
    power = hardware.power_limit_w * np.where(is_training, 0.45 + 0.5 * work.flops_share, 0.25)
    for at, now in enumerate(grid.tolist()):
        hot = bool(throttled[at])
        event = HostSampled(
            seconds=1.0,
            cpu=round(float(dice.uniform(0.1, 0.3)), 3),
            memory_bytes=_MEMORY,
            disk_free_bytes=300 * 10**9,
            disk_read_bytes_per_s=1e6,
            disk_written_bytes_per_s=2e5,
            gpu_utilisation=(round(float(used[at]), 2),) * gpus,
            gpu_memory_bytes=(13 * 2**30,) * gpus,
            gpu_power_w=(round(float(power[at]), 1),) * gpus,
            gpu_clock_mhz=(1530.0 / (work.throttled_factor if hot else 1.0),) * gpus,
            gpu_temperature_c=(87.0 if hot else 66.0,) * gpus,
            gpu_throttled=("heat" if hot else "",) * gpus,
            received_bytes_per_s=(round(float(inside[at])), round(float(outside[at]))),
            sent_bytes_per_s=(round(float(inside[at])), round(float(outside[at]))),
            packets_per_s=(10.0, round(float(outside[at]) / 1400)),
            dropped=(0, 0),
            retransmitted=int(dice.poisson(0.3)),
        )
        journal.sample(host, event, at_s=now)
