"""Where the time of a step goes, measured where the work is done and without waiting for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias

import torch

__all__ = ["PHASES", "Phase", "PhaseClock", "Timer"]

Phase: TypeAlias = Literal["data", "forward", "backward", "exchange", "optimizer"]

PHASES = ("data", "forward", "backward", "exchange", "optimizer", "other")
"""What a step's time is split into; exchange is exposed communication, other is all that has no name."""


class Timer(Protocol):
    """Moments, and the seconds between them once they are past."""

    def now(self) -> Any:
        """A stamp of the moment when the work given out so far is done."""
        ...

    def is_past(self, stamp: Any) -> bool:
        """Whether that moment has come."""
        ...

    def seconds(self, start: Any, stop: Any) -> float:
        """Seconds between two moments that are past."""
        ...


class _HostTimer:
    """The host's clock, for work that is done when the call returns."""

    def now(self) -> float:
        return perf_counter()

    def is_past(self, stamp: float) -> bool:
        return stamp <= perf_counter()

    def seconds(self, start: float, stop: float) -> float:
        return stop - start


class _StreamTimer:
    """Events in the GPU's queue, for work that is only queued when the call returns."""

    def now(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def is_past(self, stamp: torch.cuda.Event) -> bool:
        return bool(stamp.query())  # type: ignore[no-untyped-call]

    def seconds(self, start: torch.cuda.Event, stop: torch.cuda.Event) -> float:
        return float(start.elapsed_time(stop)) / 1000


@dataclass(frozen=True, slots=True)
class _Span:
    name: str
    start: Any
    stop: Any


class PhaseClock:
    """Splits the time from the end of one step to the end of the next into phases."""

    def __init__(self, device: torch.device, *, timer: Timer | None = None) -> None:
        self._timer = timer or (_StreamTimer() if device.type == "cuda" else _HostTimer())
        self._finished: dict[int, tuple[_Span, list[_Span]]] = {}
        self.restart()

    def restart(self) -> None:
        """Begin the step anew: what went before, such as an evaluation, is no part of it."""
        self._begun = self._timer.now()
        self._spans: list[_Span] = []

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Count the time inside the block as this phase of the step; one phase at a time."""
        start = self._timer.now()
        try:
            yield
        finally:
            self._spans.append(_Span(name, start, self._timer.now()))

    def finish(self, step: int) -> None:
        """End the step; the next one begins."""
        whole = _Span("step", self._begun, self._timer.now())
        self._finished[step] = (whole, self._spans)
        self._begun, self._spans = whole.stop, []

    def read(self, step: int) -> dict[str, float] | None:
        """Seconds in each of PHASES, once; None while the step is not over. Earlier steps are forgotten."""
        if step not in self._finished or not self._timer.is_past(self._finished[step][0].stop):
            return None
        whole, spans = self._finished[step]
        self._finished = {number: held for number, held in self._finished.items() if number > step}
        split = dict.fromkeys(PHASES, 0.0)
        for span in spans:
            split[span.name] += self._timer.seconds(span.start, span.stop)
        total = self._timer.seconds(whole.start, whole.stop)
        split["other"] = max(0.0, total - sum(split.values()))
        return split
