"""What the sampler of a host wrote, as columns: stretches between two of its starts, and one put together of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import orjson

from tandem.observe.clocks import CAPPED, is_fault
from tandem.observe.series.columns import HostSamples, Numbers
from tandem.observe.series.room import MEMORY, Room
from tandem.observe.series.table import Table
from tandem.runlog.event import HostDescribed, HostSampled
from tandem.runlog.record import LATEST_NS, MOST, SCHEMA

__all__ = ["Stretch", "StretchReader", "build_samples"]

_OF_GPUS = (
    "gpu_utilisation",
    "gpu_memory_bytes",
    "gpu_power_w",
    "gpu_clock_mhz",
    "gpu_temperature_c",
    "gpu_throttled",
    "gpu_capped",
)
_OF_INTERFACES = ("received_bytes_per_s", "sent_bytes_per_s", "packets_per_s", "dropped")
_LISTS = _OF_GPUS + _OF_INTERFACES
_FIELDS = tuple(each.name for each in fields(HostSampled))
_COLUMNS = (*_FIELDS, "gpu_capped")
_WIDE = frozenset({"memory_bytes", "disk_free_bytes", "gpu_memory_bytes"})
"""Too large for single precision."""
_WHOLE = _WIDE | {"dropped", "retransmitted"}
"""Whole numbers, which have no nan: what is not known is negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Samples whose lists have one order; the last axis goes from sample to sample."""

    described: HostDescribed | None
    columns: Mapping[str, Any]
    """By the names of the fields, and `time_ns`; of lists, a row for each place in them."""


class _Open:
    """A stretch that may go on."""

    def __init__(self, described: HostDescribed | None, columns: Mapping[str, Any], room: Room) -> None:
        self._described = described
        self._table = Table(columns, room=room)

    def maybe_append(self, described: HostDescribed | None, columns: Mapping[str, Any]) -> bool:
        """Take samples if they are of the same form; returns whether they are."""
        is_same = described == self._described and all(
            held.shape[:-1] == columns[name].shape[:-1] for name, held in self._table.held.items()
        )
        if is_same:
            self._table.append(columns)
        return is_same

    def stretch(self) -> Stretch:
        """What it holds by now."""
        return Stretch(described=self._described, columns=self._table.held)


class StretchReader:
    """Turns blocks of lines into columns, and gives back the lines that are no plain samples."""

    def __init__(self, room: Room = MEMORY) -> None:
        self._room = room
        self._described: HostDescribed | None = None
        self._open: list[_Open] = []
        self.first_ns: int | None = None
        """Time of the first sample."""
        self.last_ns = 0
        """The latest time of a sample."""

    def describe(self, described: HostDescribed) -> None:
        """From here on, lists are in the order that this says."""
        self._described = described

    def add(self, time_ns: int, event: HostSampled) -> None:
        """Take a sample that was read by itself."""
        held = {name: [getattr(event, name)] for name in _FIELDS}
        self._keep([time_ns], held)

    def read(self, block: bytes) -> Iterator[bytes]:
        """Take the samples of a block; yields its other lines, each at its place among them."""
        lines = block.split(b"\n")[:-1]
        try:
            rows = orjson.loads(b"[" + block[:-1].replace(b"\n", b",") + b"]")
        except ValueError:
            rows = []
        if len(rows) != len(lines):
            rows = [_maybe_loads(line) for line in lines]
        others = [at for at, row in enumerate(rows) if not _is_sample(row)]
        for before, at in pairwise([-1, *others, len(rows)]):
            yield from self._read_rows(rows[before + 1 : at], lines[before + 1 : at])
            if at < len(rows) and lines[at]:
                yield lines[at] + b"\n"

    def stretches(self) -> list[Stretch]:
        """All stretches by now, in the order of the file."""
        return [each.stretch() for each in self._open]

    def _read_rows(self, rows: Sequence[Any], lines: Sequence[bytes]) -> Iterator[bytes]:
        if not rows:
            return
        named = [row["fields"] for row in rows]
        try:
            times = [row["time_ns"] for row in rows]
            held = {name: [each[name] for each in named] for name in _FIELDS}
            self._keep(times, held)
        except (KeyError, TypeError, ValueError, OverflowError):
            yield from (line + b"\n" for line in lines)

    def _keep(self, times: list[int], held: Mapping[str, list[Any]]) -> None:
        columns: dict[str, Any] = {"time_ns": _times(times)}
        for name, values in held.items():
            if name == "gpu_throttled":
                columns[name] = np.array([[is_fault(each) for each in row] for row in values], np.bool_).T
                columns["gpu_capped"] = np.array(
                    [[each == CAPPED for each in row] for row in values], np.bool_
                ).T
            else:
                column: Any = np.array(values, np.float64).T
                if (np.abs(column) > MOST).any():
                    raise ValueError(f"{name} is out of bounds")
                column = np.where(column < 0, np.nan, column) if name in _WHOLE else column
                columns[name] = column if name in _WIDE else column.astype(np.float32)
            if columns[name].ndim != 1 + (name in _LISTS):
                raise ValueError(f"{name} is of another form")
        self.first_ns = int(columns["time_ns"][0]) if self.first_ns is None else self.first_ns
        self.last_ns = max(self.last_ns, int(columns["time_ns"].max()))
        if not self._open or not self._open[-1].maybe_append(self._described, columns):
            self._open.append(_Open(self._described, columns, self._room))
            self._open[-1].maybe_append(self._described, columns)


def _times(times: list[int]) -> Any:
    held = np.array(times)
    if held.dtype != np.int64 or (held < 0).any() or (held > LATEST_NS).any():
        raise ValueError("a time is out of bounds")
    return held


def _maybe_loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return None


def _is_sample(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and row.get("event") == "HostSampled"
        and row.get("schema") == SCHEMA
        and isinstance(row.get("fields"), dict)
    )


def build_samples(stretches: Sequence[Stretch], time_s: Numbers) -> HostSamples | None:
    """Put stretches together in the order that the last start of the sampler had; None where nothing says an order."""
    known = [each.described for each in stretches if each.described is not None]
    if not known:
        return None
    last = known[-1]
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for stretch in stretches:
        described = stretch.described or known[0]
        for name in _COLUMNS:
            rows[name].append(_placed(stretch.columns[name], name, described, last))
    columns = {
        name: held[0] if len(held) == 1 else np.concatenate(held, axis=-1) for name, held in rows.items()
    }
    return HostSamples(described=last, time_s=time_s, **columns)


def _placed(values: Any, name: str, described: HostDescribed, last: HostDescribed) -> Any:
    """A row for each thing of the last start: interfaces by name, GPUs by number; nan where there was none."""
    if name not in _LISTS:
        return values
    of_gpus = name in _OF_GPUS
    wanted = range(len(last.gpus)) if of_gpus else last.interfaces
    there = list(range(len(described.gpus)) if of_gpus else described.interfaces)
    if list(wanted) == there and len(there) == len(values):
        return values
    empty = False if values.dtype == np.bool_ else np.nan
    placed = np.full((len(wanted), values.shape[-1]), empty, values.dtype)
    # Backwards, so that of a name which is there twice the first counts.
    rows = {each: row for row, each in reversed(list(enumerate(there[: len(values)])))}
    for row, each in enumerate(wanted):
        if each in rows:
            placed[row] = values[rows[each]]
    return placed
