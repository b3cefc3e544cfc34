"""Imports the curves that any tool wrote for TensorBoard."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.errors import TandemError
from tandem.observe.imports.curves import read_curves
from tandem.observe.imports.imported import Imported, sum_up
from tandem.observe.imports.observed import Observed
from tandem.observe.imports.place import refuse_existing, write_run
from tandem.observe.imports.plain import plain_run
from tandem.observe.imports.rows import tell_curves
from tandem.observe.imports.timeline import Timed
from tandem.progress import SILENT, Progress
from tandem.runlog.event import RunImported, StepFinished

__all__ = ["import_tensorboard"]


def import_tensorboard(
    folder: Path,
    run: Path,
    *,
    observed: Observed = Observed(),  # noqa: B008 - frozen
    progress: Progress = SILENT,
) -> Imported:
    """Read all event files below a folder into a new run folder; raises where no curve of them is known."""
    refuse_existing(run)
    curves = read_curves(folder, progress)
    if not curves.points:
        found = ", ".join(curves.unused[:8]) or "nothing that could be read"
        raise TandemError(
            f"{folder} has no curve that Tandem knows (it has {found}): docs/import.md lists the names."
        )
    timed = list(tell_curves(curves))
    begun_s = timed[0][0]
    facts: dict[str, JsonValue] = {**observed.facts(), "unused_tags": list(curves.unused)}
    head = RunImported(
        tool="tensorboard", files=curves.files, times="wall", step_kind=_step_kind(timed), facts=facts
    )
    events = [
        (0.0, head),
        (0.0, plain_run(run.name)),
        *((time_s - begun_s, event) for time_s, event in timed),
    ]
    write_run(run, events, begun_s=begun_s)
    return sum_up(
        run,
        [event for _, event in timed],
        facts=facts,
        times="wall",
        torn=curves.torn,
        unused=curves.unused,
    )


def _step_kind(timed: Sequence[Timed]) -> str:
    steps = [event.step for _, event in timed if isinstance(event, StepFinished)]
    return "each" if steps and all(after - before <= 1 for before, after in pairwise(steps)) else "mean"
