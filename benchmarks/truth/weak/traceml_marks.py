"""Lets TraceML watch a rank: its own marks, at the phases that Tandem's clock knows.

TraceML is told of a loop of one's own by `traceml.init()`, `trace_step(model)` and wrappers of loader, model, loss and
optimiser. The wrappers set timed regions of these names, and so does this file. The exchange of gradients counts to
backward, as it does under DistributedDataParallel, where TraceML looks for ranks that wait.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tandem.telemetry.clock import PhaseClock
from tandem.train import assemble, passes, step

__all__ = ["install"]

_REGIONS = {
    "data": "_traceml_internal:dataloader_next",
    "forward": "_traceml_internal:forward_time",
    "backward": "_traceml_internal:backward_time",
    "exchange": "_traceml_internal:backward_time",
    "optimizer": "_traceml_internal:optimizer_step",
}


def install() -> None:
    """Begin when training begins, and end with it: a rank leaves without Python's own tidying up."""
    traceml: Any = importlib.import_module("traceml_ai")
    timing: Any = importlib.import_module("traceml_ai.utils.timing")
    initial: Any = importlib.import_module("traceml_ai.sdk.initial")
    phase, make, learn, train = (
        PhaseClock.phase,
        step.TrainingStep.__call__,
        passes.PlainPass.__init__,
        assemble.train_rank,
    )
    models: list[Any] = []

    @contextmanager
    def marked(self: PhaseClock, name: Any) -> Iterator[None]:
        scope = timing.TimeScope.STEP
        with timing.timed_region(_REGIONS[name], scope=scope, record_gpu_events=True), phase(self, name):
            yield

    def keep(self: Any, model: Any, **named: Any) -> None:
        models.append(model)
        learn(self, model, **named)

    def traced(self: Any, *given: Any, **named: Any) -> Any:
        with traceml.trace_step(models[-1]):
            return make(self, *given, **named)

    def watched(*given: Any, **named: Any) -> Any:
        traceml.init(mode="manual", aggregator_host=os.environ["TRACEML_AGGREGATOR_HOST"])
        try:
            return train(*given, **named)
        finally:
            initial._stop_runtime_for_init()  # noqa: SLF001

    PhaseClock.phase = marked  # type: ignore[method-assign]
    step.TrainingStep.__call__ = traced  # type: ignore[method-assign]
    passes.PlainPass.__init__ = keep  # type: ignore[method-assign]
    assemble.train_rank = watched
