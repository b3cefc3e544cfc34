"""Times what runs on a device: replays of a CUDA graph where one can be recorded, events around calls elsewhere."""

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

__all__ = ["Stopwatch", "Timed", "first_line"]

_WARM_UPS = 2
_FLUSH_BYTES = 256 * 2**20
_COPY_BYTES = 2**31
_CPU_REPETITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Median microseconds of a call, and how they were taken."""

    us: float
    how: Literal["graph", "eager", "cpu"]
    why_eager: str | None = None
    """What kept a graph from being recorded."""


class Stopwatch:
    """Times calls on one device, with nothing of theirs in its cache."""

    def __init__(self, device: torch.device, *, repetitions: int = 20) -> None:
        self._device = device
        self._repetitions = repetitions
        self._on_gpu = device.type == "cuda"
        # A backward pass runs where its forward pass ran: both must be on the stream that is recorded.
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None  # type: ignore[no-untyped-call]
        self._flush = torch.empty(_FLUSH_BYTES if self._on_gpu else 0, dtype=torch.int8, device=device)

    def stream(self) -> AbstractContextManager[object]:
        """Where everything that is to be timed must be prepared."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def time(self, run: Callable[[], object]) -> Timed:
        """Call it until it is warm, then time it."""
        if not self._on_gpu:
            return Timed(us=_median_on_cpu(run), how="cpu")
        for _ in range(_WARM_UPS):
            run()
        torch.cuda.synchronize(self._device)
        try:
            graph = self._record(run)
        except Exception as error:  # noqa: BLE001  (whatever it is that a graph cannot hold)
            torch.cuda.synchronize(self._device)
            return Timed(us=self._median(run), how="eager", why_eager=first_line(error))
        return Timed(us=self._median(graph.replay), how="graph")

    def copy_bytes_per_s(self) -> float:
        """How much the device reads and writes a second in a large copy."""
        size = _COPY_BYTES if self._on_gpu else _FLUSH_BYTES
        held, into = (torch.zeros(size, dtype=torch.int8, device=self._device) for _ in range(2))
        return 2 * size / self.time(lambda: into.copy_(held)).us * 1e6

    def _record(self, run: Callable[[], object]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            run()
        graph.replay()
        torch.cuda.synchronize(self._device)
        return graph

    def _median(self, run: Callable[[], object]) -> float:
        marks = []
        for _ in range(self._repetitions):
            # While this is written, the host has time to queue what follows.
            self._flush.zero_()
            before = self._mark()
            run()
            marks.append((before, self._mark()))
        torch.cuda.synchronize(self._device)
        return statistics.median(1e3 * float(before.elapsed_time(after)) for before, after in marks)

    def _mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event


def _median_on_cpu(run: Callable[[], object]) -> float:
    run()
    seconds = []
    for _ in range(_CPU_REPETITIONS):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return 1e6 * statistics.median(seconds)


def first_line(error: BaseException) -> str:
    """What went wrong, short enough for a table."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
