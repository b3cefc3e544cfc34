"""What the samplers of the hosts saw, computed from the history."""

from collections.abc import Iterator

import numpy as np
from benchmarks.truth.world.history import Attempt, History
from benchmarks.truth.world.timing import Array, host_of_rank
from benchmarks.truth.world.world import World
from numpy.typing import NDArray

from tandem.runlog.event import HostDescribed

__all__ = ["describe_host", "sample_host"]

_OVERHEAD = 1.045
"""Headers and acknowledgements."""
_PACKET_BYTES = 1400
_GIB = 2**30


def describe_host(world: World, workers: int) -> HostDescribed:
    """What a sampler says of its host at its start."""
    has_gpus = world.cluster.has_gpus
    return HostDescribed(
        cores=world.cluster.cores,
        memory_bytes=64 * _GIB,
        gpus=(world.cluster.device,) * workers if has_gpus else (),
        gpu_memory_bytes=(32 * _GIB,) * workers if has_gpus else (),
        gpu_power_limit_w=(300.0,) * workers if has_gpus else (),
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, world.network.nominal_bits_per_s),
        disk="sda1",
    )


def sample_host(
    history: History, attempt: Attempt, host: int, rng: np.random.Generator
) -> Iterator[tuple[float, str]]:
    """True times and bodies of the samples of one host in one start."""
    world, evidence = history.world, history.world.evidence
    workers = attempt.start.workers[host]
    begin = attempt.launched_s + 0.5
    times = np.arange(begin + evidence.sample_s, attempt.end_s, evidence.sample_s)
    if not len(times):
        return
    times = times + 0.002 * rng.random(len(times))
    seconds = np.diff(times, prepend=begin)
    if evidence.sample_gap is not None:
        low, high = (share * history.wall_s for share in evidence.sample_gap)
        seen = (times < low) | (times > high)
        # Counters go on in the gap, and the next sample covers it.
        times = times[seen]
        if not len(times):
            return
        seconds = np.diff(times, prepend=begin)
    ranks = np.flatnonzero(host_of_rank(attempt.start.workers) == host)
    sent = _grown(attempt, attempt.timing.transfer_bytes * _OVERHEAD, times, begin) / seconds
    background = world.network.background_bytes_per_s * (0.5 + rng.random((2, len(times))))
    noise = 1 + 0.01 * rng.standard_normal((2, len(times)))
    across, received = sent * noise[0] + background[0], sent * noise[1] + background[1]
    inner = _inner_bytes(world, attempt, host)
    loopback = _grown(attempt, inner, times, begin) / seconds
    busy = _busy(attempt, ranks, times, seconds)
    again = np.diff(
        np.interp(times, attempt.timing.end.max(axis=1), np.cumsum(attempt.timing.retransmitted)), prepend=0.0
    )
    yield from zip(
        times.tolist(),
        _bodies(world, workers, (seconds, loopback, across, received, busy, again), rng),
        strict=True,
    )


def _grown(attempt: Attempt, step_bytes: float, times: Array, begin: float) -> Array:
    """Bytes since the sample before, where each step sends so many between the two ends of its transfer."""
    ends = attempt.timing.transfer.ravel()
    total = step_bytes * np.arange(1, len(attempt.timing.transfer) + 1)
    steps = np.stack([total - step_bytes, total], axis=1).ravel()
    ends = np.maximum.accumulate(ends)
    grown: Array = np.diff(
        np.interp(times, ends, steps, left=0.0), prepend=np.interp(begin, ends, steps, left=0.0)
    )
    return grown


def _inner_bytes(world: World, attempt: Attempt, host: int) -> float:
    """What goes over loopback in a step."""
    start = attempt.start
    ring = 2 * (start.ranks - 1) / start.ranks * world.model.gradient_bytes if start.ranks > 1 else 0.0
    within = 0.0 if world.cluster.has_gpus else ring * (start.workers[host] - 1)
    through_mesh = 2 * ring if world.network.has_mesh and len(start.workers) > 1 else 0.0
    return float(within + through_mesh)


def _busy(attempt: Attempt, ranks: NDArray[np.int64], times: Array, seconds: Array) -> Array:
    """Rank-seconds of computing per second."""
    timing = attempt.timing
    work = (timing.own + timing.optimizer + timing.rehearsal)[:, ranks].sum(axis=1)
    share: Array = np.diff(np.interp(times, timing.end.max(axis=1), np.cumsum(work)), prepend=0.0) / seconds
    return np.clip(share, 0.0, len(ranks))


def _bodies(
    world: World, workers: int, columns: tuple[Array, ...], rng: np.random.Generator
) -> Iterator[str]:
    seconds, loopback, across, received, busy, again = columns
    cores, has_gpus = world.cluster.cores, world.cluster.has_gpus
    share_busy = np.full(len(busy), 1.3 * workers / cores) if has_gpus else 0.9 * busy / workers
    cpu = np.clip(0.02 + share_busy, 0, 1)
    noise = rng.random(len(seconds)).tolist()
    is_hot = world.compute.heat is not None
    packets = (across + received) / _PACKET_BYTES
    rows = zip(
        seconds.tolist(), cpu.tolist(), loopback.tolist(), across.tolist(), received.tolist(), packets.tolist(),
        again.astype(int).tolist(), (busy / max(workers, 1)).tolist(), noise, strict=True,
    )  # fmt: skip
    for length, load, inner, out, into, count, resent, share, extra in rows:
        gpus = _gpu_lists(workers if has_gpus else 0, share, extra, is_hot=is_hot)
        yield (
            f'"event":"HostSampled","fields":{{"seconds":{length:.6f},"cpu":{load:.4f},'
            f'"memory_bytes":8053063680,"disk_free_bytes":512000000000,'
            f'"disk_read_bytes_per_s":{4096 * extra:.1f},"disk_written_bytes_per_s":40960.0,'
            f'{gpus}"received_bytes_per_s":[{inner:.1f},{into:.1f}],"sent_bytes_per_s":[{inner:.1f},{out:.1f}],'
            f'"packets_per_s":[{inner / 30000:.1f},{count:.1f}],"dropped":[0,0],"retransmitted":{resent}}}'
        )


def _gpu_lists(count: int, share: float, extra: float, *, is_hot: bool) -> str:
    """A GPU that waits for the others reads 100 % all the same; its power tells more."""
    power, heat = 90 + 200 * share * (0.9 + 0.1 * extra), 45 + 30 * share + 10 * is_hot
    lists = {
        "gpu_utilisation": f"{1.0 if share > 0.01 else 0.0}",
        "gpu_memory_bytes": "15032385536",
        "gpu_power_w": f"{power:.1f}",
        "gpu_clock_mhz": f"{1380.0 - 150 * is_hot * share:.1f}",
        "gpu_temperature_c": f"{heat:.1f}",
        "gpu_throttled": '"heat"' if is_hot and share > 0.3 else '""',
    }
    return "".join(f'"{name}":[{",".join([text] * count)}],' for name, text in lists.items())
