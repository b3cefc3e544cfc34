"""A record: an event with its time, its writer and its number, and its form as one line of strict JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tandem.artefact import JsonValue
from tandem.runlog.event import EVENTS, Event, Unknown

__all__ = ["LATEST_NS", "LONGEST_S", "MOST", "MOST_RANKS", "SCHEMA", "Record", "from_line", "to_line"]

SCHEMA = 1

_KINDS = {kind.__name__: kind for kind in EVENTS}
_to_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

# Bounds of what a stranger's log may say: readers add, multiply, draw and reserve memory by these numbers.
LATEST_NS = 1 << 62
"""In the year 2116; the difference of two times still fits into 63 bits."""
MOST = 1 << 53
"""The largest whole number that is exact wherever it is shown."""
MOST_RANKS = 1 << 16
LONGEST_S = 1e9
"""Thirty years, and the most that one clock can be ahead of another."""
_LARGEST = 3e38
"""What single precision cannot hold is infinite here too."""
_MOST_ITEMS = 10_000
_DEEPEST = 20
_COUNT = (0, MOST)
_BOUNDS = {
    "attempt": _COUNT,
    "cores": _COUNT,
    "count": _COUNT,
    "epoch": _COUNT,
    "exit_code": (-MOST, MOST),
    "max_steps": _COUNT,
    "number": _COUNT,
    "pairs": _COUNT,
    "parameters": _COUNT,
    "rank": (-1, MOST_RANKS - 1),
    "ranks": (0, MOST_RANKS),
    "since_ns": (0, LATEST_NS),
    "step": _COUNT,
    "updates_per_epoch": _COUNT,
    "world_size": (0, MOST_RANKS),
}
"""Of whole numbers, by the names of the fields; others may be -1, which stands for what is not known."""


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
    """Decode a line; raises ValueError when it is not a record, or holds a number that no run can have."""
    try:
        held = _from_json(line.decode())
        schema, kind, named = _integer(held["schema"]), _text(held["event"]), _object(held["fields"])
        event, extra = (
            _build_event(kind, named) if schema == SCHEMA else (Unknown(kind=kind, fields=_free(named)), {})
        )
        return Record(
            time_ns=_time(held["time_ns"]),
            clock_s=_number(held["clock_s"]),
            rank=_rank(held["rank"]) if "rank" in held else None,
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
        return Unknown(kind=kind, fields=_free(named)), {}
    readers = _FIELDS[known]
    try:
        values = {name: readers[name](value) for name, value in named.items() if name in readers}
        event = known(**values)
    except TypeError:
        return Unknown(kind=kind, fields=_free(named)), {}
    if len(values) == len(named):
        return event, {}
    return event, _free({name: value for name, value in named.items() if name not in readers})


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


def _whole(least: int, most: int) -> Callable[[Any], int]:
    """A reader of whole numbers: TypeError for what is none, ValueError for one that is out of bounds."""

    def read(value: Any) -> int:
        if type(value) is not int:
            raise TypeError("a whole number is needed")
        if not least <= value <= most:
            raise ValueError("a number is out of bounds")
        return value

    return read


_integer = _whole(-1, MOST)
_time = _whole(0, LATEST_NS)
_rank = _whole(0, MOST_RANKS - 1)


def _number(value: Any) -> float:
    # Nearly every one: of each step there are a dozen.
    return value if type(value) is float and -_LARGEST < value < _LARGEST else _odd_number(value)


def _odd_number(value: Any) -> float:
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if type(value) is not float and type(value) is not int:
        raise TypeError("a number is needed")
    # Compared before it is made a float, which an integer of hundreds of digits cannot be.
    if value > _LARGEST:
        return math.inf
    return -math.inf if value < -_LARGEST else float(value)


def _seconds(value: Any) -> float:
    if type(value) is float and -LONGEST_S < value < LONGEST_S:
        return value
    number = _odd_number(value)
    is_endless = type(value) is str or abs(value) == math.inf
    if abs(number) > LONGEST_S and not is_endless:
        raise ValueError("a time is out of bounds")
    return number


def _object(value: Any) -> dict[str, JsonValue]:
    if type(value) is not dict:
        raise TypeError("an object is needed")
    return value


def _free(value: Any) -> dict[str, JsonValue]:
    """An object of any content, whose numbers and depth are bounded."""
    held = _object(value)
    _check_free(held, _DEEPEST)
    return held


def _check_free(value: Any, depth: int) -> None:
    if not depth:
        raise ValueError("values are nested too deeply")
    if type(value) is int and not -LATEST_NS <= value <= LATEST_NS:
        raise ValueError("a number is out of bounds")
    for inner in value.values() if type(value) is dict else value if type(value) is list else ():
        _check_free(inner, depth - 1)


def _counts(value: Any) -> dict[str, int]:
    return {name: _integer(count) for name, count in _few(_object(value)).items()}


def _numbers(value: Any) -> dict[str, float]:
    return {name: _seconds(held) for name, held in _few(_object(value)).items()}


def _few(value: Any) -> Any:
    if len(value) > _MOST_ITEMS:
        raise ValueError("there are too many values")
    return value


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_all(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError("a list is needed")
        return tuple(map(read, _few(value)))

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
    Mapping[str, JsonValue]: _free,
}


def _reader(name: str, kind: Any) -> Callable[[Any], Any]:
    if kind is int and name in _BOUNDS:
        return _whole(*_BOUNDS[name])
    if kind is float and name.endswith("_s") and not name.endswith("_per_s"):
        return _seconds
    return _READERS[kind]


_FIELDS = {kind: {each.name: _reader(each.name, each.type) for each in fields(kind)} for kind in EVENTS}
