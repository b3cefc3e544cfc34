"""Puts the folded files of a run together."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path

import numpy as np
import yaml

from tandem.errors import TandemError
from tandem.observe.series.clocks import Clocks, set_clock
from tandem.observe.series.columns import Counts, HostSamples, Marked, RankSteps, Series, Steps
from tandem.observe.series.life import Life, fold_life
from tandem.observe.series.milestones import fold_checkpoints, fold_evaluations, fold_probes
from tandem.observe.series.part import MOST_SPLITS, Part, no_steps
from tandem.observe.series.rounds import Rounds, RowKeeper, in_order, stand
from tandem.observe.series.sampled import build_samples
from tandem.runlog.card import DataCard, read_card
from tandem.runlog.event import (
    BatchSplit,
    DataPrepared,
    ExchangeProbed,
    LossMeasured,
    RunStarted,
    ScoreImported,
    TrainingStarted,
    TranslationScored,
)

__all__ = ["Assembly"]

_NOT_MARKED = (DataPrepared, ExchangeProbed, LossMeasured, ScoreImported, TranslationScored)
"""They are told of elsewhere in a series."""


class Assembly:
    """Takes files as they are read, and makes the series of them."""

    def __init__(self, run: Path, *, leader: str) -> None:
        self._run, self._leader = run, leader
        self._parts: list[Part] = []

    def add(self, part: Part) -> None:
        """Take a file."""
        self._parts.append(part)

    def finish(self) -> Series:
        """Put all together."""
        parts = sorted(self._parts, key=attrgetter("name"))
        clocks = Clocks(parts)
        for part in parts:
            set_clock(part, clocks)
        begun_ns = min((part.first_ns for part in parts if part.first_ns is not None), default=0)
        end_ns = max((part.last_ns for part in parts), default=begun_ns)
        marks = _marks(parts, begun_ns)
        life = fold_life(marks)
        leader = next((part for part in parts if part.name == self._leader), Part(name=""))
        led = [each for each in marks if each.rank is not None and each.rank == leader.rank]
        steps = _fold_steps(leader, begun_ns)
        recipe = _read_recipe(self._run)
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
            ranks=_fold_ranks(parts, steps, life),
            redone_steps=steps.redone_steps,
            redone_s=steps.redone_s,
            probes=fold_probes(_probes(parts), steps.rounds),
            evaluations=fold_evaluations(led),
            checkpoints=fold_checkpoints(led),
            translations=tuple(leader.translations),
            examined=tuple(life.examined.values()),
            links=tuple(life.links.values()),
            samples=_fold_samples(parts, begun_ns),
            marks=_shown(marks),
            card=_find_card(self._run, marks, recipe),
            recipe=recipe,
            damaged=sum(part.damaged for part in parts),
            dropped=life.dropped,
        )


def _marks(parts: Iterable[Part], begun_ns: int) -> list[Marked]:
    """All rare records in order of time."""
    marks = [
        Marked(
            time_s=(rare.record.time_ns - begun_ns) / 1e9,
            rank=rare.record.rank,
            host=rare.record.host,
            event=rare.record.event,
        )
        for part in parts
        for rare in part.rare
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


def _fold_steps(leader: Part, begun_ns: int) -> _Led:
    """The rounds of the run, the steps that stand, and those that were done again."""
    rows = leader.steps = in_order(leader.steps) if leader.steps else no_steps()
    starts: list[tuple[int, int]] = []
    processes: list[int] = []
    for rare in leader.rare:
        match rare.record.event:
            case TrainingStarted(step=step):
                starts.append((rare.record.time_ns, step))
            case RunStarted():
                processes.append(rare.record.time_ns)
    rounds, stands = stand(rows, starts=starts, processes_ns=processes)
    kept = {each.name: rows[each.name][stands] for each in fields(Steps) if each.name != "time_s"}
    time_ns = rows["time_ns"][stands]
    return _Led(
        rounds=rounds,
        steps=Steps(time_s=(time_ns - begun_ns) / 1e9, **kept),
        time_ns=time_ns,
        redone_steps=int((~stands).sum()),
        redone_s=float(rows["duration_s"][~stands].sum()),
    )


def _fold_ranks(parts: Iterable[Part], led: _Led, life: Life) -> RankSteps:
    """A row for each rank; the columns of the files are let go one by one."""
    of_ranks = [part for part in parts if part.rank is not None]
    ranks = _rank_count(of_ranks, life)
    keeper = RowKeeper(led.steps.step, led.time_ns, rounds=led.rounds, ranks=ranks)
    for part in of_ranks:
        if part.rank is not None and part.steps:
            keeper.keep(part.rank, in_order(part.steps))
            part.steps = {}
    hosts = (life.processes[rank].host if rank in life.processes else "" for rank in range(ranks))
    return keeper.finish(tuple(hosts))


def _rank_count(parts: Iterable[Part], life: Life) -> int:
    """As many as there were at most: logs of some may be on other hosts' disks, or lost."""
    logged = 1 + max([*(part.rank for part in parts if part.rank is not None), *life.processes], default=-1)
    if life.imported is not None:
        return logged
    sizes = (each.world_size for each in life.processes.values())
    return max([logged, *sizes, *(start.ranks for _, start in life.starts)])


def _probes(parts: Iterable[Part]) -> Iterator[tuple[int, int, ExchangeProbed]]:
    for part in parts:
        for rare in part.rare:
            if isinstance(rare.record.event, ExchangeProbed) and rare.record.rank is not None:
                yield rare.record.time_ns, rare.record.rank, rare.record.event


def _fold_samples(parts: Iterable[Part], begun_ns: int) -> dict[str, HostSamples]:
    found: dict[str, HostSamples] = {}
    for part in parts:
        if not part.stretches or part.host is None:
            continue
        time_s = np.concatenate([each.columns["time_ns"] for each in part.stretches])
        samples = build_samples(part.stretches, np.maximum.accumulate((time_s - begun_ns) / 1e9))
        part.stretches = []
        if samples is not None:
            found[part.host] = samples
    return found


def _read_recipe(run: Path) -> Mapping[str, object]:
    with suppress(OSError, ValueError, yaml.YAMLError):
        held = yaml.safe_load((run / "recipe.yaml").read_text(encoding="utf-8"))
        if isinstance(held, dict):
            return held
    return {}


def _find_card(run: Path, marks: Iterable[Marked], recipe: Mapping[str, object]) -> DataCard | None:
    """The data card as the log has it; else that of the folder with the data, if it is still there."""
    logged = [mark.event.card for mark in marks if isinstance(mark.event, DataPrepared)]
    if logged:
        with suppress(TandemError):
            return DataCard.from_json(logged[-1])
    data = recipe.get("data")
    folder = data.get("folder") if isinstance(data, dict) else None
    for place in dict.fromkeys((run / str(folder or "data"), run / "data")):
        with suppress(TandemError, OSError):
            return read_card(place / "card.json")
    return None
