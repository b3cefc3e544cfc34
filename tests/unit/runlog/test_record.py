"""Records and their lines."""

import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.runlog.event import (
    EVENTS,
    BatchesPlanned,
    DataPrepared,
    Event,
    RunFinished,
    StageFinished,
    StepFinished,
    Unknown,
)
from tandem.runlog.record import SCHEMA, Record, from_line, to_line

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 62), 1 << 62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WHOLE = st.integers(0, (1 << 16) - 1)
NUMBERS = st.floats(-1e9, 1e9)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "int": WHOLE,
    "float": NUMBERS,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(st.text(), max_size=3).map(tuple),
    "tuple[int, ...]": st.lists(WHOLE, max_size=3).map(tuple),
    "tuple[float, ...]": st.lists(NUMBERS, max_size=3).map(tuple),
    "Mapping[str, int]": st.dictionaries(st.text(), WHOLE, max_size=3),
    "Mapping[str, float]": st.dictionaries(st.text(), NUMBERS, max_size=3),
}


def values_of(annotation: object) -> st.SearchStrategy[Any]:
    name = (
        annotation.__name__
        if isinstance(annotation, type) and annotation in (str, int, float, bool)
        else str(annotation)
    )
    return VALUES.get(name.replace("collections.abc.", ""), st.dictionaries(st.text(), JSON, max_size=3))


def events() -> st.SearchStrategy[Event]:
    known = [st.builds(kind, **{each.name: values_of(each.type) for each in fields(kind)}) for kind in EVENTS]
    return st.one_of(*known)


def records() -> st.SearchStrategy[Record]:
    times = {"time_ns": st.integers(0, 1 << 62), "clock_s": NUMBERS}
    by_rank = st.builds(Record, **times, rank=WHOLE, sequence=WHOLE, event=events())
    by_host = st.builds(Record, **times, host=st.text(), sequence=WHOLE, event=events())
    return by_rank | by_host


def line_of(event: str, named: dict[str, Any], **other: Any) -> bytes:
    held = {
        "schema": 1,
        "time_ns": 5,
        "clock_s": 0.5,
        "rank": 0,
        "sequence": 0,
        "event": event,
        "fields": named,
    }
    return json.dumps(held | other).encode()


@given(records())
def test_every_record_survives_its_line(record: Record) -> None:
    line = to_line(record)
    assert from_line(line) == record
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert line.isascii()


@pytest.mark.parametrize(("value", "text"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")])
def test_numbers_that_are_not_finite_are_strings_in_the_line_and_numbers_again(
    value: float, text: str
) -> None:
    event = BatchesPlanned(pairs=1, updates_per_epoch=2, padding_share=value)
    line = to_line(Record(time_ns=0, clock_s=0.0, rank=0, sequence=0, event=event))
    assert json.loads(line)["fields"]["padding_share"] == text
    read = from_line(line).event
    assert isinstance(read, BatchesPlanned)
    assert repr(read.padding_share) == text


def test_numbers_that_are_not_finite_deep_in_a_card_become_strings() -> None:
    event = DataPrepared(card={"a": [1, {"b": math.nan}]})
    line = to_line(Record(time_ns=0, clock_s=0.0, rank=0, sequence=0, event=event))
    assert from_line(line).event == DataPrepared(card={"a": [1, {"b": "nan"}]})


def test_a_value_without_a_json_form_is_refused() -> None:
    event = DataPrepared(card={"a": object()})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        to_line(Record(time_ns=0, clock_s=0.0, rank=0, sequence=0, event=event))


def test_an_event_of_a_newer_writer_is_kept_and_written_again_as_it_was() -> None:
    line = line_of("MoonLanded", {"at_s": 3})
    record = from_line(line)
    assert record.event == Unknown(kind="MoonLanded", fields={"at_s": 3})
    assert json.loads(to_line(record)) == json.loads(line)


def test_a_field_of_a_newer_writer_is_kept_beside_the_known_ones() -> None:
    line = line_of("RunFinished", {"reason": "done", "mood": "good"})
    record = from_line(line)
    assert record.event == RunFinished(reason="done")
    assert record.extra == {"mood": "good"}
    assert json.loads(to_line(record)) == json.loads(line)


def test_a_whole_number_is_a_fine_float() -> None:
    event = from_line(
        line_of("StageFinished", {"stage": "x", "duration_s": 2, "counts": {}, "reused": False})
    ).event
    assert event == StageFinished(stage="x", duration_s=2.0, counts={}, reused=False)


@pytest.mark.parametrize("held", [{}, {"reason": 3}, {"reason": None}, {"reason": ["x"]}])
def test_an_event_with_fields_that_do_not_fit_is_kept_as_unknown(held: dict[str, Any]) -> None:
    assert from_line(line_of("RunFinished", held)).event == Unknown(kind="RunFinished", fields=held)


def test_events_of_a_newer_schema_are_not_guessed_at() -> None:
    record = from_line(line_of("RunFinished", {"reason": "done"}, schema=SCHEMA + 1))
    assert record.event == Unknown(kind="RunFinished", fields={"reason": "done"})
    assert record.schema == SCHEMA + 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 1}',
        line_of("RunFinished", {})[:-5],
        line_of("RunFinished", {}, sequence="0"),
        line_of("RunFinished", {}, time_ns=1.5),
        line_of("RunFinished", {}, fields=[]),
    ],
)
def test_what_is_not_a_record_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_line(line)


STEP = {
    "step": 1,
    "epoch": 0,
    "loss": 4.5,
    "nll": 4.0,
    "learning_rate": 0.1,
    "gradient_norm": 1.0,
    "loss_scale": 1.0,
    "skipped": False,
    "target_tokens": 100,
    "source_tokens": 100,
    "pairs": 10,
    "batches": 1,
    "duration_s": 0.1,
    "phases": {"data": 0.1},
    "split": 0,
}


@pytest.mark.parametrize(
    "changed",
    [
        {"step": 10**400},
        {"step": 1 << 63},
        {"step": -1},
        {"duration_s": 10**400},
        {"duration_s": 1e10},
        {"phases": {"data": 1e300}},
        {"epoch": -5},
        {"target_tokens": -(1 << 60)},
        {"later": 10**400},
        {"later": json.loads("[" * 50 + "]" * 50)},
    ],
)
def test_a_number_that_no_run_can_have_makes_the_line_no_record(changed: dict[str, Any]) -> None:
    from_line(line_of("StepFinished", STEP))
    with pytest.raises(ValueError, match=r"out of bounds|too deeply"):
        from_line(line_of("StepFinished", STEP | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"time_ns": -1},
        {"time_ns": 1 << 63},
        {"rank": 10**9},
        {"rank": -1},
        {"sequence": 10**30},
        {"event": "MoonLanded", "fields": {"at": 10**400}},
        {"schema": 2, "fields": {"at": 10**400}},
        {"schema": 10**400},
    ],
)
def test_a_record_has_bounds_as_its_event_has(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="out of bounds"):
        from_line(json.dumps(json.loads(line_of("RunFinished", {"reason": "done"})) | changed).encode())


def test_a_number_beyond_single_precision_is_infinite() -> None:
    event = from_line(line_of("StepFinished", STEP | {"loss": 10**400, "nll": -1e300})).event
    assert isinstance(event, StepFinished)
    assert (event.loss, event.nll) == (math.inf, -math.inf)


def test_a_list_without_end_makes_the_line_no_record() -> None:
    fields = {"run": "a", "tandem": "", "recipe": "", "world_size": 1, "host": "", "python": "", "torch": ""}
    with pytest.raises(ValueError, match="too many"):
        from_line(line_of("RunStarted", {**fields, "command": ["a"] * 10_001}))
