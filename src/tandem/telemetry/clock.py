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


@dataclass(frozen=True, slots=True)
class _Finished:
    whole: _Span
    spans: list[_Span]
    asides: list[_Span]


class PhaseClock:
    """Splits the time from the end of one step to the end of the next into phases."""

    def __init__(self, device: torch.device, *, timer: Timer | None = None) -> None:
        self._timer = timer or (_StreamTimer() if device.type == "cuda" else _HostTimer())
        self._finished: dict[int, _Finished] = {}
        self.restart()

    def restart(self) -> None:
        """Begin the step anew: what went before, such as an evaluation, is no part of it."""
        self._begun = self._timer.now()
        self._spans: list[_Span] = []
        self._asides: list[_Span] = []

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Count the time inside the block as this phase of the step; one phase at a time."""
        start = self._timer.now()
        try:
            yield
        finally:
            self._spans.append(_Span(name, start, self._timer.now()))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the block out of the step, and the phases inside it."""
        kept, start = self._spans, self._timer.now()
        self._spans = []
        try:
            yield
        finally:
            self._spans = kept
            self._asides.append(_Span("aside", start, self._timer.now()))

    def stamp(self) -> Any:
        """A moment for `seconds`."""
        return self._timer.now()

    def seconds(self, start: Any, stop: Any) -> float:
        """Seconds between two moments; they must be past, as all are that came before a step that was read."""
        return self._timer.seconds(start, stop)

    def finish(self, step: int) -> None:
        """End the step; the next one begins."""
        whole = _Span("step", self._begun, self._timer.now())
        self._finished[step] = _Finished(whole, self._spans, self._asides)
        self._begun, self._spans, self._asides = whole.stop, [], []

    def read(self, step: int) -> dict[str, float] | None:
        """Seconds in each of PHASES, once; None while the step is not over. Earlier steps are forgotten."""
        if step not in self._finished or not self._timer.is_past(self._finished[step].whole.stop):
            return None
        held = self._finished[step]
        self._finished = {number: later for number, later in self._finished.items() if number > step}
        split = dict.fromkeys(PHASES, 0.0)
        for span in held.spans:
            split[span.name] += self._length_s(span)
        total = self._length_s(held.whole) - sum(map(self._length_s, held.asides))
        split["other"] = max(0.0, total - sum(split.values()))
        return split

    def _length_s(self, span: _Span) -> float:
        return self._timer.seconds(span.start, span.stop)
