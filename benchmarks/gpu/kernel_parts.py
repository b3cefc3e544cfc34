"""Contests of kernels by part, each held in a process of its own and rehearsed in others beforehand."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from benchmarks.gpu.adam_contests import ADAM, build_adam_contest
from benchmarks.gpu.attention_contests import ATTENTION, build_attention
from benchmarks.gpu.contest import Contest, hold, rehearse
from benchmarks.gpu.elementwise_contests import ELEMENTWISE, build_elementwise
from benchmarks.gpu.loss_contests import LOSS, build_loss
from benchmarks.gpu.product_contests import PRODUCTS, build_products
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.stopwatch import Stopwatch

__all__ = ["PARTS", "REHEARSED", "Job", "build_contest", "measure_part", "rehearse_contest"]

_Build: TypeAlias = Callable[[Setting, str], Contest]

PARTS: Mapping[str, tuple[Sequence[str], _Build]] = {
    "attention": (ATTENTION, build_attention),
    "norm": (ELEMENTWISE, build_elementwise),
    "loss": (LOSS, build_loss),
    "adam": (ADAM, build_adam_contest),
    "products": (PRODUCTS, build_products),
}
"""The contests of each part, and what builds one of them."""

REHEARSED = ("attention", "norm", "loss")
"""Parts with much to compile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a process is to do."""

    part: str
    sizes: tuple[str, ...]
    places: int
    vocabulary: int
    device: str
    until: float
    """Seconds of the monotonic clock after which nothing more is begun."""


def measure_part(job: Job) -> dict[str, Any]:
    """Hold all contests of a part, and say what a copy reaches on the device."""
    _set_up(job)
    device = torch.device(job.device)
    stopwatch = Stopwatch(device)
    begun = time.monotonic()
    rows: list[dict[str, Any]] = []
    with stopwatch.stream():
        bytes_per_s = stopwatch.copy_bytes_per_s()
        for size in job.sizes:
            setting = _setting(job, size)
            for kernel in PARTS[job.part][0]:
                contest = build_contest(setting, part=job.part, kernel=kernel)
                rows += hold(contest, stopwatch, bytes_per_s=bytes_per_s, until=job.until)
                del contest
    return {
        "copy_bytes_per_s": round(bytes_per_s),
        "seconds": round(time.monotonic() - begun, 1),
        "rows": [{"part": job.part, **row} for row in rows],
    }


def rehearse_contest(job: Job, kernel: str) -> None:
    """Compile what one contest needs, in its only size."""
    from torch._inductor import config  # noqa: PLC0415  (slow to import, and not wanted on a CPU)

    _set_up(job)
    # All cores are busy with other contests, and so is the GPU: what is fastest is not to be learnt now.
    config.compile_threads = 1
    config.autotune_local_cache = False
    (size,) = job.sizes
    rehearse(build_contest(_setting(job, size), part=job.part, kernel=kernel))


def build_contest(setting: Setting, *, part: str, kernel: str) -> Contest:
    """Return a contest with those that can take part on the device."""
    contest = PARTS[part][1](setting, kernel)
    if setting.device.type == "cuda":
        return contest
    return replace(contest, contenders=[each for each in contest.contenders if not each.is_compiled])


def _setting(job: Job, size: str) -> Setting:
    return Setting(size=size, places=job.places, vocabulary=job.vocabulary, device=torch.device(job.device))


def _set_up(job: Job) -> None:
    torch.manual_seed(1)
    if job.device == "cuda":
        from torch._functorch import config  # noqa: PLC0415  (as above)

        torch.backends.cuda.enable_cudnn_sdp(False)
        # Otherwise a compiled backward pass could be run once only after its forward pass, and not timed alone.
        config.donated_buffer = False
