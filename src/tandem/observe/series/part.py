"""One file of a run log, folded: columns of its steps or samples, and its rare records one by one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tandem.observe.series.blocks import read_blocks
from tandem.observe.series.columns import PHASES, Counts
from tandem.observe.series.regular import Column, Form, read_regular
from tandem.observe.series.sampled import Stretch, StretchReader
from tandem.runlog.event import (
    BatchSplit,
    HostDescribed,
    HostSampled,
    SampleTranslated,
    StepFinished,
    Unknown,
)
from tandem.runlog.record import Record, from_line

__all__ = ["MOST_SPLITS", "Part", "Rare", "no_steps", "read_part"]

MOST_SPLITS = 100
_BLOCK_BYTES = 1 << 21
_SAMPLES_BLOCK_BYTES = 1 << 18

_OF_EVERY_RANK = (
    Column(name="time_ns", kind="whole", dtype=np.int64),
    Column(name="step", kind="whole", dtype=np.int64),
    Column(name="duration_s", kind="decimal", dtype=np.float32),
    *(Column(name=each, kind="decimal", dtype=np.float32, absent=np.nan) for each in PHASES),
    Column(name="sent_bytes", kind="whole", dtype=np.float32, absent=0),
)
_OF_THE_LEADER = (
    *(each for each in _OF_EVERY_RANK if each.name != "duration_s"),
    *(
        Column(name=each, kind="decimal", dtype=np.float64)
        for each in ("loss", "nll", "learning_rate", "gradient_norm", "duration_s")
    ),
    *(
        Column(name=each, kind="whole", dtype=np.int64)
        for each in ("epoch", "target_tokens", "source_tokens", "pairs")
    ),
    Column(name="skipped", kind="flag", dtype=np.bool_),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rare:
    """A record that is kept whole, and how many steps its file held before it."""

    row: int
    record: Record


@dataclass(slots=True, kw_only=True)
class Part:
    """What one file holds, with the times that its writer's host had."""

    name: str
    rank: int | None = None
    host: str | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    """Columns of StepFinished, in the order of the file; empty where there is none."""
    rare: list[Rare] = field(default_factory=list)
    translations: list[SampleTranslated] = field(default_factory=list)
    """Of the last evaluation that had some."""
    stretches: list[Stretch] = field(default_factory=list)
    damaged: int = 0
    splits: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    """The latest time in the file."""

    def take(self, record: Record, *, row: int) -> None:
        """Keep a record that is neither a step nor a sample."""
        self.note(record)
        match record.event:
            case Unknown():
                return
            case SampleTranslated() as event:
                if self.translations and self.translations[-1].step != event.step:
                    self.translations.clear()
                self.translations.append(event)
                return
            case BatchSplit():
                self.splits += 1
                if self.splits > MOST_SPLITS:
                    return
        self.rare.append(Rare(row=row, record=record))

    def note(self, record: Record) -> None:
        """Keep who wrote it and when."""
        self.rank, self.host = record.rank, record.host
        self.first_ns = record.time_ns if self.first_ns is None else self.first_ns
        self.last_ns = max(self.last_ns, record.time_ns)


def no_steps() -> dict[str, Any]:
    """The leader's columns without a row."""
    return {each.name: np.zeros(0, each.dtype) for each in _OF_THE_LEADER}


def read_part(path: Path, is_leader: bool, on_bytes: Callable[[int], None] | None = None) -> Part:
    """Fold one file; a file that is gone is empty."""
    part = Part(name=path.name, rank=_rank_of(path))
    try:
        if path.name.startswith("samples-"):
            _read_samples(path, part, on_bytes)
        else:
            _read_steps(path, part, _OF_THE_LEADER if is_leader else _OF_EVERY_RANK, on_bytes)
    except FileNotFoundError:
        pass
    return part


def _rank_of(path: Path) -> int | None:
    kind, _, number = path.stem.partition("-")
    return int(number) if kind == "rank" and number.isdecimal() else None


def _read_steps(
    path: Path, part: Part, columns: tuple[Column, ...], on_bytes: Callable[[int], None] | None
) -> None:
    form: Form | None = None
    pieces: dict[str, list[Any]] = {each.name: [] for each in columns}
    rows = 0
    for block, lost in read_blocks(path, size=_BLOCK_BYTES):
        part.damaged += lost
        form = form or _first_form(block)
        read = read_regular(block, form, columns)
        rest = list(_other_lines(block, read.stops, read.is_read))
        upto = np.cumsum(read.is_read)
        single: list[tuple[int, Record]] = []
        for line, text in rest:
            record = _maybe_record(text, part)
            if record is None:
                continue
            if isinstance(record.event, StepFinished):
                part.note(record)
                single.append((int(upto[line]), record))
                form = Form.maybe_of(text) or form
            else:
                part.take(record, row=rows + int(upto[line]) + len(single))
        _note_times(part, read.columns["time_ns"])
        rows += int(upto[-1] if len(upto) else 0) + len(single)
        for column in columns:
            pieces[column.name].append(_with_single(read.columns[column.name], single, column))
        if on_bytes is not None:
            on_bytes(len(block))
    part.steps = {name: np.concatenate(held) for name, held in pieces.items()} if rows else {}


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


def _note_times(part: Part, time_ns: Counts) -> None:
    if len(time_ns):
        part.first_ns = int(time_ns[0]) if part.first_ns is None else part.first_ns
        part.last_ns = max(part.last_ns, int(time_ns.max()))


def _with_single(values: Any, single: list[tuple[int, Record]], column: Column) -> Any:
    """Put the steps that were read one by one to their places among the others."""
    if not single:
        return values
    added = np.array([_value(record, column.name) for _, record in single], column.dtype)
    return np.insert(values, [at for at, _ in single], added)


def _value(record: Record, name: str) -> Any:
    if name in PHASES:
        return record.event.phases.get(name, np.nan)  # type: ignore[attr-defined]
    return record.time_ns if name == "time_ns" else getattr(record.event, name)


def _read_samples(path: Path, part: Part, on_bytes: Callable[[int], None] | None) -> None:
    reader = StretchReader()
    for block, lost in read_blocks(path, size=_SAMPLES_BLOCK_BYTES):
        part.damaged += lost
        for line in reader.read(block):
            record = _maybe_record(line, part)
            if record is None:
                continue
            if isinstance(record.event, HostSampled):
                part.note(record)
                reader.add(record.time_ns, record.event)
                continue
            if isinstance(record.event, HostDescribed):
                reader.describe(record.event)
            part.take(record, row=0)
        if on_bytes is not None:
            on_bytes(len(block))
    part.stretches = reader.finish()
    for stretch in part.stretches:
        _note_times(part, stretch.columns["time_ns"])
