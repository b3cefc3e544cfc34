"""The figure of losses: as trained on, on the valid set, and on training pairs measured like the valid ones."""

import numpy as np

from tandem.observe.figures.curve import Trace, axis, curves, line
from tandem.observe.figures.look import GREEN, SOURCE, TARGET, Figure
from tandem.observe.series.columns import Series

__all__ = ["losses_figure"]


def losses_figure(series: Series) -> Figure | None:
    """Losses over steps; without any, nothing."""
    traces: list[Trace] = []
    steps = series.steps
    imported = series.imported is not None
    trained = steps.loss if imported or not np.isfinite(steps.nll).any() else steps.nll
    if np.isfinite(trained).any():
        name = "training loss, as that tool has it" if imported else "training, with dropout"
        traces.append(line(name, steps.step, trained, colour=SOURCE))
    measured = (
        ("valid", [each.valid_loss for each in series.evaluations], TARGET, "solid"),
        ("probe: training pairs, no dropout", [each.probe_loss for each in series.evaluations], GREEN, "dot"),
    )
    at = np.array([each.step for each in series.evaluations])
    for name, found, colour, dash in measured:
        column = np.array(found, np.float64)
        if np.isfinite(column).any():
            traces.append(line(name, at, column, colour=colour, dash=dash, markers=True))
    if not traces:
        return None
    unit = "loss, as that tool has it" if imported else "loss, nats a target token"
    return curves(traces, x=axis("step"), y=axis(unit))
