"""Steps of a log that are written alike, read together; every other line is left to the reader of single lines."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from tandem.observe.series.columns import Counts, Flags
from tandem.observe.series.digits import Text
from tandem.runlog.record import MOST, SCHEMA

__all__ = ["Column", "Form", "Regular", "read_regular"]

_WORD = 8
_EVENT = b'"StepFinished"'
_END = b"}}"
_FIRST_PRINTED = np.uint8(ord(" "))
_PRINTED = np.uint8(ord("~") - ord(" "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One number of each step that is wanted, and how it is kept."""

    name: str
    """The key in the line; keys of the phases are as good as any."""
    kind: str
    """`whole`, `decimal` or `flag`."""
    dtype: Any
    absent: float | None = None
    """What stands for it in lines without such a key; None: there is no step without it."""
    most: float = MOST
    """A line with more is left to the reader of single lines, which knows what no run can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a line is written: its keys in order, each with all that stands between the value before and its own."""

    names: tuple[str, ...]
    marks: tuple[bytes, ...]

    @classmethod
    def maybe_of(cls, line: bytes) -> "Form | None":
        """The form of a line that holds a step; None where it is not one that can be read together."""
        try:
            held = orjson.loads(line)
        except ValueError:
            return None
        if not isinstance(held, dict) or held.get("event") != "StepFinished":
            return None
        pairs = tuple(_marks(held))
        form = cls(names=tuple(name for name, _ in pairs), marks=tuple(mark for _, mark in pairs))
        is_plain = line.count(b":") == len(pairs) and line.endswith(_END + b"\n")
        return form if is_plain and len(set(form.names)) == len(pairs) else None


def _marks(held: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    lead = b"{"
    for name, value in held.items():
        yield name, lead + f'"{name}":'.encode()
        lead = b","
        if isinstance(value, dict) and value:
            yield from _marks(value)
            lead = b"},"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regular:
    """The steps of a block that could be read together."""

    columns: Mapping[str, Any]
    is_read: Flags
    """Of each line of the block."""
    stops: Counts
    """Where each line of the block ends."""


def read_regular(block: bytes, form: Form | None, columns: Sequence[Column]) -> Regular:
    """Read the wanted columns of the lines that are of this form and hold nothing strange."""
    text = Text(block)
    stops = text.find(b"\n")
    nothing = Regular(
        columns={each.name: np.zeros(0, each.dtype) for each in columns},
        is_read=np.zeros(len(stops), np.bool_),
        stops=stops,
    )
    if form is None or any(each.absent is None and each.name not in form.names for each in columns):
        return nothing
    lines, colons = _candidates(text, form, stops)
    spans = _spans(form, colons, stops[lines])
    starts = np.where(lines > 0, stops[lines - 1] + 1, 0)
    wanted = {"schema", "event", "fields", *(each.name for each in columns)}
    good = _is_of_form(text, form, colons, starts=starts, wanted=wanted)
    good &= _is_step(text, spans, stops[lines])
    read: dict[str, Any] = {}
    for column in columns:
        read[column.name], bad = _read(text, spans.get(column.name), column, len(lines))
        good &= ~bad
    is_read = nothing.is_read
    is_read[lines[good]] = True
    return Regular(
        columns={name: values if good.all() else values[good] for name, values in read.items()},
        is_read=is_read,
        stops=stops,
    )


def _candidates(text: Text, form: Form, stops: Counts) -> tuple[Counts, Counts]:
    """Lines with as many colons as the form, and the places of these: a row a key, a column a line."""
    colons = text.find(b":")
    upto = np.searchsorted(colons, stops)
    counts = np.diff(upto, prepend=0)
    fits = counts == len(form.names)
    strange = text.bytes - _FIRST_PRINTED > _PRINTED
    if np.count_nonzero(strange) > len(stops):
        spoilt = np.setdiff1d(np.flatnonzero(strange), stops, assume_unique=True)
        fits[np.searchsorted(stops, spoilt)] = False
    lines = np.flatnonzero(fits)
    first = upto[lines] - len(form.names)
    if len(lines) == len(stops):
        return lines, np.ascontiguousarray(colons.reshape(-1, len(form.names)).T)
    return lines, colons[first + np.arange(len(form.names))[:, None]]


Spans = Mapping[str, tuple[Counts, Counts]]


def _spans(form: Form, colons: Counts, stops: Counts) -> Spans:
    """Where each value begins and ends."""
    begins = [colon + 1 for colon in colons]
    ends = [begin - len(mark) for begin, mark in zip(begins, form.marks, strict=True)]
    return dict(zip(form.names, zip(begins, [*ends[1:], stops - len(_END)], strict=True), strict=True))


def _is_of_form(text: Text, form: Form, colons: Counts, *, starts: Counts, wanted: Collection[str]) -> Flags:
    """Whether the keys that matter stand where the form has them, and also those behind their values."""
    good: Flags = colons[0] + 1 - len(form.marks[0]) == starts
    before = ""
    for name, mark, colon in zip(form.names, form.marks, colons, strict=True):
        if name in wanted or before in wanted:
            seen = mark[-_WORD:]
            keep = np.uint64(((1 << 64) - 1) ^ ((1 << 8 * (_WORD - len(seen))) - 1))
            expected = np.uint64(int.from_bytes(seen.rjust(_WORD, b"\0"), "little"))
            good &= (text.words[colon - _WORD + 1] & keep) == expected
        before = name
    return good


def _is_step(text: Text, spans: Spans, stops: Counts) -> Flags:
    start, stop = spans["schema"]
    good: Flags = (stop - start == 1) & (text.bytes[start] == ord(str(SCHEMA)))
    start, stop = spans["event"]
    good &= stop - start == len(_EVENT)
    good &= text.words[start] == np.uint64(int.from_bytes(_EVENT[:_WORD], "little"))
    good &= (text.bytes[stops - 1] == _END[1]) & (text.bytes[stops - 2] == _END[0])
    return good


def _read(text: Text, span: tuple[Counts, Counts] | None, column: Column, count: int) -> tuple[Any, Flags]:
    if span is None:
        return np.full(count, column.absent, column.dtype), np.zeros(count, np.bool_)
    start, stop = span
    if column.kind == "flag":
        is_true = text.bytes[start] == ord("t")
        return is_true, ~is_true & (text.bytes[start] != ord("f"))
    values, bad = (text.whole if column.kind == "whole" else text.decimal)(start, stop)
    bad |= values > column.most
    if column.kind == "decimal":
        bad |= values < -column.most
    if bad.any():
        values = np.where(bad, 0, values)
    return values.astype(column.dtype, copy=False), bad
