"""Puts the folded files of a run together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path

import numpy as np

from tandem.observe.series.beside import Beside
from tandem.observe.series.clocks import Clocks
from tandem.observe.series.columns import Counts, HostSamples, Marked, Probes, RankSteps, Series, Steps
from tandem.observe.series.life import Life, fold_life
from tandem.observe.series.milestones import fold_checkpoints, fold_evaluations, fold_probes
from tandem.observe.series.part import MOST_SPLITS, Part, no_steps
from tandem.observe.series.room import MEMORY, Room
from tandem.observe.series.rounds import Rounds, RowKeeper, in_order, stand
from tandem.observe.series.sampled import build_samples
from tandem.observe.series.timed import Timed, set_clock
from tandem.runlog.event import (
    BatchSplit,
    DataPrepared,
    LossMeasured,
    RunStarted,
    ScoreImported,
    TrainingStarted,
    TranslationScored,
)

__all__ = ["Assembly"]

_MOST_UNLOGGED = 4096
_NOT_MARKED = (DataPrepared, LossMeasured, ScoreImported, TranslationScored)
"""They are told of elsewhere in a series."""
_MOST_CELLS = 1 << 20
"""Ranks times steps, of ranks that have no log."""


class Assembly:
    """Makes the series of the files of a run, as often as it is asked; what they have gained is put to what was there.

    The rows of ranks in a series change with the next one.
    """

    def __init__(self, run: Path, *, room: Room = MEMORY) -> None:
        self._run = run
        self._beside = Beside(run)
        self._keeper = RowKeeper(room)

    def series(
        self, parts: Iterable[Part], *, leader: str, lets_go: bool = False, is_part: bool = False
    ) -> Series:
        """Put all together; `lets_go` takes the columns out of the files one by one, where memory counts.

        Where more files are to come, as `is_part` says, ranks beyond the last one that came have no row.
        """
        parts = sorted(parts, key=attrgetter("name"))
        clocks = Clocks(parts, leader=leader)
        timed = [set_clock(part, clocks) for part in parts]
        begun_ns = min((each.first_ns for each in timed if each.first_ns is not None), default=0)
        end_ns = max((each.last_ns for each in timed if each.last_ns is not None), default=begun_ns)
        marks = _marks(timed, begun_ns)
        life = fold_life(marks)
        first = next((each for each in timed if each.part.name == leader), set_clock(Part(name=""), clocks))
        led = [each for each in marks if each.rank is not None and each.rank == first.part.rank]
        steps = _fold_steps(first, begun_ns)
        logged = [mark.event.card for mark in marks if isinstance(mark.event, DataPrepared)]
        return Series(
            name=life.name or self._run.name,
            begun_ns=begun_ns,
            end_s=max(0.0, (end_ns - begun_ns) / 1e9),
            is_closed=life.is_closed,
            ended=life.ended,
            imported=life.imported,
            processes=tuple(life.processes[rank] for rank in sorted(life.processes)),
            process_ranks=tuple(sorted(life.processes)),
            starts=tuple(life.starts),
            finished=life.finished,
            planned=life.planned,
            devices=tuple(life.devices[rank] for rank in sorted(life.devices)),
            steps=steps.steps,
            ranks=self._fold_ranks(timed, steps, life, lets_go=lets_go, is_part=is_part),
            redone_steps=steps.redone_steps,
            redone_s=steps.redone_s,
            probes=_fold_probes(timed, steps.rounds),
            evaluations=fold_evaluations(led),
            checkpoints=fold_checkpoints(led),
            translations=tuple(first.part.translations),
            examined=tuple(life.examined.values()),
            links=tuple(life.links.values()),
            samples=_fold_samples(timed, begun_ns),
            marks=_shown(marks),
            card=self._beside.card(logged[-1] if logged else None),
            recipe=self._beside.recipe(),
            damaged=sum(part.damaged for part in parts),
            led_damaged=first.part.damaged,
            dropped=life.dropped,
            set_s=clocks.set_s,
            ahead_s=sum(jump.size_ns for jump in first.jumps) / 1e9,
        )

    def _fold_ranks(
        self, timed: Iterable[Timed], led: "_Led", life: Life, *, lets_go: bool, is_part: bool
    ) -> RankSteps:
        """A row for each rank."""
        of_ranks = [each for each in timed if each.part.rank is not None]
        ranks = _rank_count([each.part for each in of_ranks], life, steps=len(led.steps.step))
        self._keeper.lead(led.steps.step, led.time_ns, rounds=led.rounds, ranks=ranks)
        for each in of_ranks:
            part = each.part
            if part.rank is not None and part.rank < ranks and part.steps:
                self._keeper.keep(part.rank, part.steps, ahead=each.ahead, reading=part.reading)
                part.steps = {} if lets_go else part.steps
        hosts = (life.processes[rank].host if rank in life.processes else "" for rank in range(ranks))
        return self._keeper.finish(tuple(hosts), is_part=is_part)


def _marks(timed: Iterable[Timed], begun_ns: int) -> list[Marked]:
    """All rare records in order of time."""
    marks = [
        Marked(
            time_s=(record.time_ns - begun_ns) / 1e9, rank=record.rank, host=record.host, event=record.event
        )
        for each in timed
        for record in each.rare
    ]
    marks.sort(key=attrgetter("time_s"))
    return marks


def _shown(marks: Iterable[Marked]) -> tuple[Marked, ...]:
    shown, splits = [], 0
    for mark in marks:
        splits += isinstance(mark.event, BatchSplit)
        is_too_many = isinstance(mark.event, BatchSplit) and splits > MOST_SPLITS
        if not is_too_many and not isinstance(mark.event, _NOT_MARKED):
            shown.append(mark)
    return tuple(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Led:
    """What the leader's file says of steps."""

    rounds: Rounds
    steps: Steps
    time_ns: Counts
    redone_steps: int
    redone_s: float


def _fold_steps(leader: Timed, begun_ns: int) -> _Led:
    """The rounds of the run, the steps that stand, and those that were done again."""
    held = leader.part.steps or no_steps()
    rows = in_order({**held, "time_ns": leader.ahead.without(held["time_ns"])})
    starts: list[tuple[int, int]] = []
    processes: list[int] = []
    for record in leader.rare:
        match record.event:
            case TrainingStarted(step=step):
                starts.append((record.time_ns, step))
            case RunStarted():
                processes.append(record.time_ns)
    rounds, stands = stand(rows, starts=starts, processes_ns=processes)
    # Views where all stand: nothing of a run that was never interrupted is copied.
    kept = slice(None) if stands.all() else np.flatnonzero(stands)
    columns = {each.name: rows[each.name][kept] for each in fields(Steps) if each.name != "time_s"}
    time_ns = rows["time_ns"][kept]
    return _Led(
        rounds=rounds,
        steps=Steps(time_s=(time_ns - begun_ns) / 1e9, **columns),
        time_ns=time_ns,
        redone_steps=int((~stands).sum()),
        redone_s=float(rows["duration_s"][~stands].sum()),
    )


def _rank_count(parts: Sequence[Part], life: Life, *, steps: int) -> int:
    """As many as there were at most: logs of some may be on other hosts' disks, or lost.

    A log may say that there were any number; beyond those with a log there are rows for as many as fit into little.
    """
    return min(_claimed(parts, life), max(len(parts), min(_MOST_CELLS // max(1, steps), _MOST_UNLOGGED)))


def _claimed(parts: Sequence[Part], life: Life) -> int:
    logged = 1 + max([*(part.rank for part in parts if part.rank is not None), *life.processes], default=-1)
    if life.imported is not None:
        return logged
    sizes = (each.world_size for each in life.processes.values())
    return max([logged, *sizes, *(start.ranks for _, start in life.starts)])


def _fold_probes(timed: Iterable[Timed], rounds: Rounds) -> Probes:
    held = [{**each.part.probes, "time_ns": each.probe_ns()} for each in timed]
    names = ("time_ns", "rank", *(each.name for each in fields(Probes)))
    return fold_probes({name: np.concatenate([each[name] for each in held]) for name in names}, rounds)


def _fold_samples(timed: Iterable[Timed], begun_ns: int) -> dict[str, HostSamples]:
    found: dict[str, HostSamples] = {}
    for each in timed:
        if not each.part.stretches or each.part.host is None:
            continue
        time_s = np.maximum.accumulate((each.sample_ns() - begun_ns) / 1e9)
        samples = build_samples(each.part.stretches, time_s)
        if samples is not None:
            found[each.part.host] = samples
    return found
