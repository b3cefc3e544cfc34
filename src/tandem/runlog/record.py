"""A record: an event with its time, its writer and its number, and its form as one line of strict JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tandem.artefact import JsonValue
from tandem.runlog.event import EVENTS, Event, Unknown

__all__ = ["SCHEMA", "Record", "from_line", "to_line"]

SCHEMA = 1

_KINDS = {kind.__name__: kind for kind in EVENTS}
_to_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a run log; written by a rank or by the sampler of a host."""

    time_ns: int
    """Wall clock of the writer's host, nanoseconds since 1970."""
    clock_s: float
    """Monotonic clock of the writer's host: right for durations within one process."""
    rank: int | None = None
    host: str | None = None
    sequence: int
    event: Event
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    """Fields of the event that a newer writer added."""
    schema: int = SCHEMA


def to_line(record: Record) -> bytes:
    """Encode as one line; raises TypeError or ValueError when a value has no JSON form."""
    kind, held = _event_fields(record.event)
    line = {
        "schema": record.schema,
        "time_ns": record.time_ns,
        "clock_s": record.clock_s,
        **({"host": record.host} if record.rank is None else {"rank": record.rank}),
        "sequence": record.sequence,
        "event": kind,
        "fields": {**held, **record.extra},
    }
    try:
        text = _to_json(line)
    except (TypeError, ValueError):
        text = _to_json(_plain(line))
    return text.encode("ascii") + b"\n"


def from_line(line: bytes) -> Record:
    """Decode a line; raises ValueError when it is not a record."""
    try:
        held = _from_json(line.decode())
        schema, kind, named = _integer(held["schema"]), _text(held["event"]), _object(held["fields"])
        event, extra = (
            _build_event(kind, named) if schema == SCHEMA else (Unknown(kind=kind, fields=named), {})
        )
        return Record(
            time_ns=_integer(held["time_ns"]),
            clock_s=_number(held["clock_s"]),
            rank=_integer(held["rank"]) if "rank" in held else None,
            host=None if "rank" in held else _text(held["host"]),
            sequence=_integer(held["sequence"]),
            event=event,
            extra=extra,
            schema=schema,
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a record: {error}") from error


def _event_fields(event: Event) -> tuple[str, Mapping[str, JsonValue]]:
    if isinstance(event, Unknown):
        return event.kind, event.fields
    return type(event).__name__, {name: getattr(event, name) for name in _FIELDS[type(event)]}


def _build_event(kind: str, named: dict[str, JsonValue]) -> tuple[Event, dict[str, JsonValue]]:
    """Make the event, and return what it has no field for; a kind or value that does not fit is Unknown."""
    known = _KINDS.get(kind)
    if known is None:
        return Unknown(kind=kind, fields=named), {}
    readers = _FIELDS[known]
    try:
        values = {name: readers[name](value) for name, value in named.items() if name in readers}
        event = known(**values)
    except TypeError:
        return Unknown(kind=kind, fields=named), {}
    return event, {} if len(values) == len(named) else {n: v for n, v in named.items() if n not in readers}


def _plain(value: Any) -> JsonValue:
    """Copy with infinities and NaN as strings, which strict JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(held) for held in value]
    return value  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a text is needed")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError("true or false is needed")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a whole number is needed")
    return value


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return float(_integer(value))


def _object(value: Any) -> dict[str, JsonValue]:
    if type(value) is not dict:
        raise TypeError("an object is needed")
    return value


def _counts(value: Any) -> dict[str, int]:
    return {name: _integer(count) for name, count in _object(value).items()}


def _numbers(value: Any) -> dict[str, float]:
    return {name: _number(held) for name, held in _object(value).items()}


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_all(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError("a list is needed")
        return tuple(map(read, value))

    return read_all


_READERS: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    bool: _flag,
    int: _integer,
    float: _number,
    tuple[str, ...]: _list_of(_text),
    tuple[int, ...]: _list_of(_integer),
    tuple[float, ...]: _list_of(_number),
    Mapping[str, int]: _counts,
    Mapping[str, float]: _numbers,
    Mapping[str, JsonValue]: _object,
}


_FIELDS = {kind: {each.name: _READERS[each.type] for each in fields(kind)} for kind in EVENTS}
