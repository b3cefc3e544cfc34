"""One file of a run log, folded: columns of its steps, probes or samples, and its rare records one by one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tandem.observe.series.blocks import Tail
from tandem.observe.series.columns import PHASES, Counts
from tandem.observe.series.regular import Column, Form, read_regular
from tandem.observe.series.room import MEMORY, Room
from tandem.observe.series.sampled import Stretch, StretchReader
from tandem.observe.series.table import Table
from tandem.runlog.event import (
    BatchSplit,
    ExchangeProbed,
    HostDescribed,
    HostSampled,
    RunStarted,
    SampleTranslated,
    StepFinished,
    Unknown,
)
from tandem.runlog.record import LATEST_NS, LONGEST_S, MOST_RANKS, Record, from_line

__all__ = ["MOST_SPLITS", "Part", "PartReader", "no_steps", "read_part"]

MOST_SPLITS = 100
_BLOCK_BYTES = 1 << 21
_SAMPLES_BLOCK_BYTES = 1 << 18
_FEW_BYTES = 1 << 13
"""Up to here, lines are sooner read one by one than together."""
_MOST_DIGITS = 10

_OF_EVERY_RANK = (
    Column(name="time_ns", kind="whole", dtype=np.int64, most=LATEST_NS),
    Column(name="step", kind="whole", dtype=np.int64),
    Column(name="duration_s", kind="decimal", dtype=np.float32, most=LONGEST_S),
    *(Column(name=each, kind="decimal", dtype=np.float32, absent=np.nan, most=LONGEST_S) for each in PHASES),
    Column(name="sent_bytes", kind="whole", dtype=np.float32, absent=0),
)
_OF_THE_LEADER = (
    *(each for each in _OF_EVERY_RANK if each.name != "duration_s"),
    *(
        Column(name=each, kind="decimal", dtype=np.float64)
        for each in ("loss", "nll", "learning_rate", "gradient_norm")
    ),
    Column(name="duration_s", kind="decimal", dtype=np.float64, most=LONGEST_S),
    *(
        Column(name=each, kind="whole", dtype=np.int64)
        for each in ("epoch", "target_tokens", "source_tokens", "pairs")
    ),
    Column(name="skipped", kind="flag", dtype=np.bool_),
)
_WHOLE_OF_PROBES = ("time_ns", "start", "row", "rank", "step")
_OF_PROBES = (*_WHOLE_OF_PROBES, "synchronised_s", "unsynchronised_s", "exchange_s")


@dataclass(slots=True, kw_only=True)
class Part:
    """What one file holds, with the times that its writer's host had."""

    name: str
    rank: int | None = None
    host: str | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    """Columns of StepFinished, in the order of the file; empty where there is none."""
    probes: Mapping[str, Any] = field(default_factory=dict)
    """Columns of ExchangeProbed, likewise, with `rank`, and with how many of `starts` and steps were before."""
    rare: list[Record] = field(default_factory=list)
    """In the order of the file, each once; a clock that was set back stood still."""
    rare_at: list[tuple[int, int]] = field(default_factory=list)
    """Of each rare record: how many steps were before it, and its time as it was written."""
    starts: list[int] = field(default_factory=list)
    """How many steps were before each start of a process that is among the rare records."""
    translations: list[SampleTranslated] = field(default_factory=list)
    """Of the last evaluation that had some."""
    stretches: list[Stretch] = field(default_factory=list)
    damaged: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    """The latest time in the file."""
    reading: object = None
    """The same as long as the file was read on, another one when it was begun anew."""

    def note(self, record: Record) -> None:
        """Keep when it was written, and by whom where the name of the file does not say so."""
        if self.rank is None and self.host is None:
            self.rank, self.host = record.rank, record.host
        self.note_times(record.time_ns, record.time_ns)

    def note_times(self, first_ns: int | None, last_ns: int) -> None:
        """Keep when records were written."""
        self.first_ns = first_ns if self.first_ns is None else self.first_ns
        self.last_ns = max(self.last_ns, last_ns)


def no_steps() -> dict[str, Any]:
    """The leader's columns without a row."""
    return _no_rows(_OF_THE_LEADER)


def _no_rows(columns: Iterable[Column]) -> dict[str, Any]:
    return {each.name: np.zeros(0, each.dtype) for each in columns}


def read_part(path: Path, is_leader: bool, on_bytes: Callable[[int], None] | None = None) -> Part:
    """Fold one file; a file that is gone is empty."""
    reader = PartReader(path, is_leader=is_leader)
    reader.read(on_bytes=on_bytes)
    return reader.part()


class PartReader:
    """Folds one file, and folds on what it has gained; `room` is where its columns lie."""

    def __init__(self, path: Path, *, is_leader: bool, room: Room = MEMORY) -> None:
        self._path, self._room = path, room
        self.is_leader = is_leader
        self._fold = self._begin()
        self._tail = Tail(path, on_anew=self._begin_anew)

    @property
    def offset(self) -> int:
        """Bytes that were read: whole lines only."""
        return self._tail.offset

    def behind_bytes(self, size: int) -> int:
        """Bytes of a file of that size that were not read."""
        return self._tail.behind_bytes(size)

    def read(self, *, at_most_bytes: int | None = None, on_bytes: Callable[[int], None] | None = None) -> int:
        """Read on, and not much more than is allowed; returns the bytes."""
        before = self._tail.passed_bytes
        for block, lost in self._tail.blocks(size=self._fold.block_bytes, at_most_bytes=at_most_bytes):
            self._fold.part.damaged += lost
            self._fold.take(block)
            if on_bytes is not None:
                on_bytes(len(block))
        return self._tail.passed_bytes - before

    def part(self) -> Part:
        """What was read so far; its columns and lists are not to be changed."""
        return self._fold.finish()

    def _begin(self) -> "_StepsFold | _SamplesFold":
        part = Part(name=self._path.name, rank=_rank_of(self._path), reading=object())
        if self._path.name.startswith("samples-"):
            return _SamplesFold(part, self._room)
        return _StepsFold(part, _OF_THE_LEADER if self.is_leader else _OF_EVERY_RANK, self._room)

    def _begin_anew(self) -> None:
        self._fold = self._begin()


def _rank_of(path: Path) -> int | None:
    kind, _, number = path.stem.partition("-")
    is_rank = kind == "rank" and number.isdecimal() and len(number) <= _MOST_DIGITS
    return int(number) if is_rank and int(number) < MOST_RANKS else None


class _Rares:
    """Takes the records that are neither steps nor samples."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._splits = 0
        self._seen: set[tuple[int, int]] = set()
        self._sequence, self._latest_ns = -1, 0
        self._probes = Table(
            {name: np.zeros(0, np.int64 if name in _WHOLE_OF_PROBES else np.float64) for name in _OF_PROBES}
        )

    def take(self, record: Record, *, row: int) -> None:
        """Keep a record that comes after so many steps."""
        self._part.note(record)
        match record.event:
            case Unknown():
                return
            case SampleTranslated() as event:
                if self._part.translations and self._part.translations[-1].step != event.step:
                    self._part.translations = []
                self._part.translations.append(event)
                return
            case BatchSplit():
                self._splits += 1
                if self._splits > MOST_SPLITS:
                    return
        for each in self._in_order(record):
            self._keep(each, row, written_ns=record.time_ns)

    def probes(self) -> dict[str, Any]:
        """Columns of the probes by now."""
        return self._probes.held

    def _keep(self, record: Record, row: int, *, written_ns: int) -> None:
        match record.event:
            case ExchangeProbed() as event:
                if record.rank is None:
                    return
                starts = len(self._part.starts)
                held = {"time_ns": record.time_ns, "start": starts, "row": row, "rank": record.rank}
                values = ((name, held[name] if name in held else getattr(event, name)) for name in _OF_PROBES)
                self._probes.append({name: np.array([value]) for name, value in values})
                return
            case RunStarted() if record.rank is not None:
                self._part.starts.append(row)
        self._part.rare.append(record)
        self._part.rare_at.append((row, written_ns))

    def _in_order(self, record: Record) -> Iterator[Record]:
        """A clock that was set back stands still; a lower number is another writer's, whose lines came late."""
        if (record.sequence, record.time_ns) in self._seen:
            return
        self._seen.add((record.sequence, record.time_ns))
        goes_on = record.sequence > self._sequence
        self._latest_ns = max(self._latest_ns, record.time_ns) if goes_on else record.time_ns
        self._sequence = record.sequence
        yield (record if self._latest_ns == record.time_ns else replace(record, time_ns=self._latest_ns))


class _StepsFold:
    """The log of a rank, or of what watches over ranks."""

    block_bytes = _BLOCK_BYTES

    def __init__(self, part: Part, columns: tuple[Column, ...], room: Room) -> None:
        self.part = part
        self._columns = columns
        self._held = Table(_no_rows(columns), room=room)
        self._rares = _Rares(part)
        self._form: Form | None = None
        self._rows = 0

    def finish(self) -> Part:
        """What it holds by now."""
        steps = self._held.held if self._rows else {}
        return replace(self.part, steps=steps, probes=self._rares.probes())

    def take(self, block: bytes) -> None:
        """Fold whole lines that follow those before."""
        is_few = len(block) <= _FEW_BYTES
        if not is_few:
            self._form = self._form or _first_form(block)
        read = read_regular(block, None if is_few else self._form, self._columns)
        time_ns = read.columns["time_ns"]
        upto = np.cumsum(read.is_read)
        single: list[tuple[int, Record]] = []
        for line, text in _other_lines(block, read.stops, read.is_read):
            if upto[line]:
                self.part.note_times(int(time_ns[0]), 0)
            record = _maybe_record(text, self.part)
            if record is None:
                continue
            if isinstance(record.event, StepFinished):
                self.part.note(record)
                single.append((int(upto[line]), record))
                self._form = self._form if is_few else Form.maybe_of(text) or self._form
            else:
                self._rares.take(record, row=self._rows + int(upto[line]) + len(single))
        if len(time_ns):
            self.part.note_times(int(time_ns[0]), int(time_ns.max()))
        self._rows += len(time_ns) + len(single)
        self._held.append(
            {each.name: _with_single(read.columns[each.name], single, each) for each in self._columns}
        )


def _first_form(block: bytes) -> Form | None:
    """The form of the block's first step."""
    at = block.find(b'"event":"StepFinished"')
    if at < 0:
        return None
    return Form.maybe_of(block[block.rfind(b"\n", 0, at) + 1 : block.find(b"\n", at) + 1])


def _other_lines(block: bytes, stops: Counts, is_read: Any) -> Iterator[tuple[int, bytes]]:
    for line in np.flatnonzero(~is_read).tolist():
        start = int(stops[line - 1]) + 1 if line else 0
        text = block[start : int(stops[line]) + 1]
        if text != b"\n":
            yield line, text


def _maybe_record(line: bytes, part: Part) -> Record | None:
    try:
        return from_line(line)
    except ValueError:
        part.damaged += 1
        return None


def _with_single(values: Any, single: list[tuple[int, Record]], column: Column) -> Any:
    """Put the steps that were read one by one to their places among the others."""
    if not single:
        return values
    added = np.array([_value(record, column.name) for _, record in single], column.dtype)
    return np.insert(values, [at for at, _ in single], added) if len(values) else added


def _value(record: Record, name: str) -> Any:
    if name in PHASES:
        return record.event.phases.get(name, np.nan)  # type: ignore[attr-defined]
    return record.time_ns if name == "time_ns" else getattr(record.event, name)


class _SamplesFold:
    """The log of a host's sampler."""

    block_bytes = _SAMPLES_BLOCK_BYTES

    def __init__(self, part: Part, room: Room) -> None:
        self.part = part
        self._reader = StretchReader(room)
        self._rares = _Rares(part)

    def finish(self) -> Part:
        """What it holds by now."""
        return replace(self.part, stretches=self._reader.stretches(), probes=self._rares.probes())

    def take(self, block: bytes) -> None:
        """Fold whole lines that follow those before."""
        for line in self._reader.read(block):
            self.part.note_times(self._reader.first_ns, self._reader.last_ns)
            self._take_line(line)
        self.part.note_times(self._reader.first_ns, self._reader.last_ns)

    def _take_line(self, line: bytes) -> None:
        record = _maybe_record(line, self.part)
        if record is None:
            return
        if isinstance(record.event, HostSampled):
            self._take_sample(record, record.event)
            return
        if isinstance(record.event, HostDescribed):
            self._reader.describe(record.event)
        self._rares.take(record, row=0)

    def _take_sample(self, record: Record, event: HostSampled) -> None:
        try:
            self._reader.add(record.time_ns, event)
        except ValueError:
            self.part.damaged += 1
        else:
            self.part.note(record)
