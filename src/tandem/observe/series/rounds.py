"""Which steps stand: a restart goes back to a checkpoint, and what was done after that is done again."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from tandem.observe.series.ahead import Ahead
from tandem.observe.series.columns import PHASES, Counts, Flags, RankSteps
from tandem.observe.series.room import MEMORY, Room
from tandem.observe.series.table import Table

__all__ = ["Rounds", "RowKeeper", "in_order", "stand"]

_KEPT = ("duration_s", *PHASES, "sent_bytes")
_ALWAYS = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """From one start of training to the next."""

    begun_ns: Counts
    """When the processes of each began, in order; the first has no beginning."""
    went_back_to: Counts
    """The step that each went on from."""

    def is_same(self, other: "Rounds | None") -> bool:
        """Whether both begin alike and go back alike."""
        return (
            other is not None
            and np.array_equal(self.begun_ns, other.begun_ns)
            and np.array_equal(self.went_back_to, other.went_back_to)
        )

    def of(self, time_ns: Counts) -> Counts:
        """The round of each time."""
        return np.searchsorted(self.begun_ns, time_ns, side="right") - 1

    def stands(self, step: Counts, time_ns: Counts) -> Flags:
        """Whether no later round went back behind each step."""
        later = np.minimum.accumulate(self.went_back_to[::-1])[::-1]
        limits = np.append(later[1:], np.iinfo(np.int64).max)
        return step <= limits[self.of(time_ns)]


def in_order(steps: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of one file in order of time, each once.

    A log that was gathered from several hosts may hold lines twice, and old ones behind new ones. A clock that was set
    back while steps went on is taken to have stood still.
    """
    step, time_ns = steps["step"], steps["time_ns"].copy()
    breaks = np.flatnonzero(np.diff(step) <= 0) + 1
    for run in np.split(np.arange(len(step)), breaks) if (np.diff(time_ns) < 0).any() else ():
        time_ns[run] = np.maximum.accumulate(time_ns[run])
    steps = {**steps, "time_ns": time_ns}
    if (np.diff(time_ns) > 0).all():
        return steps
    order = np.lexsort((step, time_ns))
    same = (np.diff(step[order]) == 0) & (np.diff(time_ns[order]) == 0)
    order = order[np.append(True, ~same)]
    return {name: held[order] for name, held in steps.items()}


def stand(
    steps: Mapping[str, Any], *, starts: Sequence[tuple[int, int]], processes_ns: Sequence[int]
) -> tuple[Rounds, Flags]:
    """Find the rounds of a run, and which of the leader's rows stand.

    `starts` are the times of TrainingStarted with the steps done before, `processes_ns` those of RunStarted.
    """
    step, time_ns = steps["step"], steps["time_ns"]
    found = sorted((_begun(at, starts, processes_ns), back_to) for at, back_to in starts)
    for row in (np.flatnonzero(np.diff(step) <= 0) + 1).tolist():
        # Also where the record of the restart was lost, or says something else than the steps do.
        before, after = (bisect_right(found, int(time_ns[at]), key=itemgetter(0)) for at in (row - 1, row))
        if before == after:
            found.insert(after, (int(time_ns[row]), int(step[row]) - 1))
        else:
            at, back_to = found[after - 1]
            found[after - 1] = (at, min(back_to, int(step[row]) - 1))
    found = _from_the_first(found, int(time_ns[0]) if len(time_ns) else None)
    rounds = Rounds(
        begun_ns=np.array([at for at, _ in found], np.int64),
        went_back_to=np.array([back_to for _, back_to in found], np.int64),
    )
    return rounds, rounds.stands(step, time_ns)


def _from_the_first(found: list[tuple[int, int]], row_ns: int | None) -> list[tuple[int, int]]:
    """The first round has no beginning: other hosts' clocks may be behind, and the record of its start be lost."""
    if found and (row_ns is None or found[0][0] <= row_ns):
        return [(_ALWAYS, found[0][1]), *found[1:]]
    return [(_ALWAYS, 0), *found]


def _begun(at_ns: int, starts: Sequence[tuple[int, int]], processes_ns: Sequence[int]) -> int:
    """When the process began that started training: steps of other ranks are far from that, and near the start."""
    before = max((each for each, _ in starts if each < at_ns), default=0)
    return max((each for each in processes_ns if before < each <= at_ns), default=at_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """How far the rows of one rank's file are at their places."""

    reading: object
    ahead: Ahead
    rows: int
    """Rows that need not be looked at again; those behind them are ahead of the leader's."""


class RowKeeper:
    """Puts what each rank did to the steps that stand, and what is new to what it holds already.

    The rows that it gives out are its own: they change with the next ones that are kept.
    """

    def __init__(self, room: Room = MEMORY) -> None:
        self._room = room
        self._step: Counts = np.zeros(0, np.int64)
        self._round: Counts = np.zeros(0, np.int64)
        self._rounds: Rounds | None = None
        self._table = self._build(0)
        self._kept: dict[int, _Kept] = {}
        self._filled: list[int] = []
        """Of each rank, for how many steps there is a number or nan."""
        self._missing: set[int] = set()

    def lead(self, step: Counts, time_ns: Counts, *, rounds: Rounds, ranks: int) -> None:
        """Begin with the steps that stand, and when the leader did them."""
        rounds_of, count = rounds.of(time_ns), len(self._step)
        if ranks != len(self._filled):
            self._table = self._build(ranks)
        goes_on = (
            ranks == len(self._filled)
            and rounds.is_same(self._rounds)
            and np.array_equal(step[:count], self._step)
            and np.array_equal(rounds_of[:count], self._round)
        )
        if not goes_on:
            self._kept, self._filled = {}, [0] * ranks
        self._step, self._round, self._rounds = step, rounds_of, rounds
        self._missing = set(range(ranks))
        # Not filled yet: pages of a rank are taken when its rows come.
        self._table.widen(len(step))

    def keep(self, rank: int, steps: Mapping[str, Any], *, ahead: Ahead, reading: object) -> None:
        """Take one rank's rows; those of steps or rounds that do not stand are left out."""
        self._missing.discard(rank)
        kept = self._kept.get(rank)
        if kept is None or kept.reading is not reading or not ahead.goes_on(kept.ahead):
            kept, self._filled[rank] = _Kept(reading=reading, ahead=ahead, rows=0), 0
        before = max(0, kept.rows - 1)
        time_ns = ahead.without(steps["time_ns"], start=before)
        if (np.diff(time_ns) > 0).all():
            new = {name: steps[name][kept.rows :] for name in ("step", *_KEPT)}
            new["time_ns"] = time_ns[kept.rows - before :]
            beyond = np.flatnonzero(new["step"] > self._step[-1]) if len(self._step) else [0]
            rows = kept.rows + int(beyond[0] if len(beyond) else len(new["step"]))
        else:
            # Rows must change places: all are taken anew, each time.
            new = in_order({**steps, "time_ns": ahead.without(steps["time_ns"])})
            rows = self._filled[rank] = 0
        self._fill(rank)
        self._place(rank, new)
        self._kept[rank] = _Kept(reading=reading, ahead=ahead, rows=rows)

    def finish(self, hosts: tuple[str, ...], *, is_part: bool = False) -> RankSteps:
        """All ranks, with the hosts on which they were; where it is a part, up to the last one that was kept."""
        came = set(range(len(hosts))) - self._missing
        ranks = max(came) + 1 if is_part and came else len(hosts)
        for rank in self._missing:
            if self._kept.pop(rank, None) is not None:
                self._filled[rank] = 0
            # What is only on its way takes no time and no pages.
            if rank < ranks:
                self._fill(rank)
        held = {name: column[:ranks] for name, column in self._table.held.items()}
        return RankSteps(
            duration_s=held["duration_s"],
            phases={name: held[name] for name in PHASES},
            sent_bytes=held["sent_bytes"],
            hosts=hosts[:ranks],
        )

    def _fill(self, rank: int) -> None:
        """Nothing is known of a step until the rank's row comes."""
        for column in self._table.held.values():
            column[rank, self._filled[rank] :] = np.nan
        self._filled[rank] = len(self._step)

    def _place(self, rank: int, steps: Mapping[str, Any]) -> None:
        if not len(self._step) or self._rounds is None:
            return
        place = np.minimum(np.searchsorted(self._step, steps["step"]), len(self._step) - 1)
        fits = (self._step[place] == steps["step"]) & (
            self._round[place] == self._rounds.of(steps["time_ns"])
        )
        place = place[fits]
        for name, column in self._table.held.items():
            column[rank, place] = steps[name][fits]

    def _build(self, ranks: int) -> Table:
        return Table({name: np.zeros((ranks, 0), np.float32) for name in _KEPT}, room=self._room)
