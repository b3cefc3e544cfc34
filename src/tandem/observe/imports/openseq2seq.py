"""Imports a run of OpenSeq2Seq: its console log, and the curves beside it where there are some."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from tandem.errors import TandemError
from tandem.observe.imports.console import read_lines
from tandem.observe.imports.curves import Curves, read_curves
from tandem.observe.imports.facts import Teller
from tandem.observe.imports.imported import Imported, sum_up
from tandem.observe.imports.observed import Observed
from tandem.observe.imports.place import refuse_existing, write_run
from tandem.observe.imports.plain import integer, plain_run
from tandem.observe.imports.printed import Begun, Evaluated, Item, Printed, read_story, segments
from tandem.observe.imports.timeline import Anchors, Timed, Timeline, typical_step_s
from tandem.observe.visible import visible
from tandem.progress import SILENT, Progress
from tandem.runlog.event import RunImported, StepFinished

__all__ = ["import_openseq2seq"]


def import_openseq2seq(
    log: Path,
    run: Path,
    *,
    tensorboard: Path | None = None,
    observed: Observed = Observed(),  # noqa: B008 - frozen
    start: datetime | None = None,
    progress: Progress = SILENT,
) -> Imported:
    """Read a console log, plain or compressed, into a new run folder; raises where it tells of no training."""
    refuse_existing(run)
    if not log.is_file():
        raise TandemError(f"There is no file {log}: name the console log of OpenSeq2Seq.")
    teller = Teller()
    story = read_story(read_lines(log, progress), also=teller.take)
    parts = segments(story)
    if not any(isinstance(item, Printed | Evaluated) for _, items in parts for item in items):
        raise TandemError(f"{log} tells of no step and no evaluation: is it a console log of OpenSeq2Seq?")
    curves = read_curves(tensorboard, progress) if tensorboard is not None else Curves()
    facts = {**teller.facts(), **observed.facts()}
    facts.setdefault("print_loss_steps", _interval(parts))
    begun_s = start.timestamp() if start is not None else _first_time(parts)
    facts["begun"] = "as given" if start is not None else "time in the log" if begun_s else "not known"
    timeline = Timeline(facts, curves=curves, typical_s=typical_step_s(parts))
    timed: list[Timed] = []
    for begun, items in parts:
        # A clock in the log tells how long a run lay still before it was started again.
        told_s = begun.time_s - _first_time(parts) if not math.isnan(begun.time_s) else 0.0
        timed += timeline.begin(begun, items, time_s=told_s)
        timed += timeline.tell(begun, items)
    timed, begun_s, times = _on_the_wall(timed, curves=curves, parts=len(parts), begun_s=begun_s)
    hosts = facts.get("host_names")
    first_host = str(hosts[0]) if isinstance(hosts, list) and hosts else ""
    head = [
        (
            0.0,
            RunImported(
                tool="openseq2seq",
                files=(visible(log.name), *curves.files),
                times=times,
                step_kind="mean",
                facts=facts,
            ),
        ),
        (0.0, plain_run(run.name, host=first_host, ranks=integer(facts, "gpus"))),
    ]
    write_run(run, [*head, *timed], begun_s=begun_s)
    events = [event for _, event in timed]
    return sum_up(run, events, facts=facts, times=times, torn=curves.torn, unused=curves.unused)


def _first_time(parts: Sequence[tuple[Begun, Sequence[Item]]]) -> float:
    return next((begun.time_s for begun, _ in parts if not math.isnan(begun.time_s)), 0.0)


def _interval(parts: Sequence[tuple[Begun, Sequence[Item]]]) -> int:
    """Steps between two lines about steps: the commonest, where the configuration is lost."""
    gaps: list[int] = []
    for _, items in parts:
        steps = [item.step for item in items if isinstance(item, Printed)]
        gaps += [after - before for before, after in pairwise(steps)]
    return max(set(gaps), key=gaps.count) if gaps else 0


def _on_the_wall(
    timed: Sequence[Timed], *, curves: Curves, parts: int, begun_s: float
) -> tuple[list[Timed], float, str]:
    """Times by the clock of the curves, where a run without restarts has some; else as they were added up."""
    walls = curves.wall_times()
    anchors = [
        (time_s, walls[event.step])
        for time_s, event in timed
        if isinstance(event, StepFinished) and event.step in walls
    ]
    told, wall = [each[0] for each in anchors], [each[1] for each in anchors]
    rises = all(a < b for axis in (told, wall) for a, b in pairwise(axis))
    if parts != 1 or len(anchors) < 2 or not rises:
        return list(timed), begun_s, "steps"
    clock = Anchors(told_s=told, wall_s=wall)
    placed = [(clock.wall(time_s), event) for time_s, event in timed]
    first_s = placed[0][0]
    return [(time_s - first_s, event) for time_s, event in placed], first_s, "wall"
