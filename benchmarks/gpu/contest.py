"""One piece of work done by several contenders: each must find what the first one finds, and is timed then."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from benchmarks.gpu.stopwatch import Stopwatch, first_line
from torch import Tensor

__all__ = ["MOST_DIFFERENCE", "OURS", "Contender", "Contest", "Ready", "by_autograd", "hold", "rehearse"]

OURS = "tandem"

MOST_DIFFERENCE = 0.02
"""Root mean square of the difference over that of what is wanted; rounding to bf16 makes about 0.004."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready:
    """A contender with its memory, warm."""

    runs: Mapping[str, Callable[[], object]]
    """What is timed, by its name: forward, backward, both."""
    outcome: Mapping[str, Tensor]
    """What it found, without dropout."""
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """One way to do the work."""

    name: str
    prepare: Callable[[], Ready]
    is_compiled: bool = False
    """By torch.compile: left out on a CPU."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contest:
    """The work, and what it needs at least."""

    kernel: str
    size: str
    contenders: Sequence[Contender]
    """The first one is the measure of the others."""
    least_bytes: Mapping[str, float] = field(default_factory=dict)
    """What each run must read and write, by its name."""
    flops: Mapping[str, float] = field(default_factory=dict)


def by_autograd(
    function: Callable[..., Any], inputs: Sequence[Tensor], gradients: Sequence[Tensor]
) -> dict[str, Callable[[], object]]:
    """Return runs of a function of tensors that need gradients, given the gradients of what it returns."""
    found = function(*inputs)

    def backward() -> object:
        return torch.autograd.grad(found, inputs, gradients, retain_graph=True)

    def both() -> object:
        return torch.autograd.grad(function(*inputs), inputs, gradients)

    return {"forward": lambda: function(*inputs), "backward": backward, "both": both}


def hold(contest: Contest, stopwatch: Stopwatch, *, bytes_per_s: float, until: float) -> list[dict[str, Any]]:
    """Return a row for each run of each contender; one that fails, or differs, or comes too late has one that says so.

    No contender is begun after `until`, which is in seconds of the monotonic clock.
    """
    rows: list[dict[str, Any]] = []
    wanted: tuple[str, Mapping[str, Tensor]] | None = None
    for contender in contest.contenders:
        named = {"kernel": contest.kernel, "size": contest.size, "side": contender.name}
        if time.monotonic() > until:
            rows.append({**named, "error": "left out, as the time was up"})
            continue
        begun = time.monotonic()
        try:
            ready = contender.prepare()
            wanted = wanted or (contender.name, ready.outcome)
            judged = _judge(ready.outcome, *wanted)
            noted = {**judged, **ready.notes, "prepare_s": round(time.monotonic() - begun, 2)}
            for way, run in ready.runs.items():
                rows.append(
                    {**named, "way": way, **_time(contest, way, run, stopwatch, bytes_per_s), **noted}
                )
            del ready
        except Exception as error:  # noqa: BLE001  (the others are still worth timing)
            rows.append({**named, "error": first_line(error)})
        _clear(is_compiled=contender.is_compiled)
    return rows


def rehearse(contest: Contest) -> None:
    """Run everything once, so that what is compiled is on the disk."""
    for contender in contest.contenders:
        try:
            for run in contender.prepare().runs.values():
                run()
        except Exception as error:  # noqa: BLE001  (it will fail again where it is written down)
            print(f"{contest.kernel}, {contest.size}, {contender.name}: {first_line(error)}", flush=True)
        _clear(is_compiled=contender.is_compiled)


def _judge(found: Mapping[str, Tensor], name: str, wanted: Mapping[str, Tensor]) -> dict[str, Any]:
    differences = {part: _difference(found[part], tensor) for part, tensor in wanted.items()}
    for part, difference in differences.items():
        if not difference <= MOST_DIFFERENCE:
            raise ValueError(f"{part} differs from that of {name} by {difference:.3g} of its size")
    return {"judged_by": name, "difference": _short(max(differences.values(), default=0.0))}


def _difference(found: Tensor, wanted: Tensor) -> float:
    if found.shape != wanted.shape:
        raise ValueError(f"found {tuple(found.shape)} where {tuple(wanted.shape)} is wanted")
    exact = wanted.float()
    off = (found.float() - exact).square().mean().sqrt()
    return float(off / exact.square().mean().sqrt().clamp_min(1e-20))


def _time(
    contest: Contest, way: str, run: Callable[[], object], stopwatch: Stopwatch, bytes_per_s: float
) -> dict[str, Any]:
    timed = stopwatch.time(run)
    row: dict[str, Any] = {"us": _short(timed.us), "how": timed.how}
    if timed.why_eager:
        row["why_eager"] = timed.why_eager
    if way in contest.least_bytes:
        floor_us = contest.least_bytes[way] / bytes_per_s * 1e6
        row |= {"floor_us": _short(floor_us), "share_of_floor": _short(floor_us / timed.us)}
    if way in contest.flops:
        row["tflops_per_s"] = _short(contest.flops[way] / timed.us / 1e6)
    return row


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _clear(*, is_compiled: bool) -> None:
    """What one contender leaves on the device must not be another's."""
    if is_compiled:
        torch.compiler.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
