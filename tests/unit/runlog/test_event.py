"""The page that describes the events against the events themselves."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tandem.runlog.card import DataCard
from tandem.runlog.event import EVENTS, Event
from tandem.runlog.record import Record, from_line, to_line

PAGE = (Path(__file__).parents[3] / "docs/run-log.md").read_text()
TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "true or false",
    "tuple[str, ...]": "list of strings",
    "tuple[int, ...]": "list of integers",
    "tuple[float, ...]": "list of numbers",
    "Mapping[str, int]": "object of integers",
    "Mapping[str, float]": "object of numbers",
}


def section(heading: str) -> str:
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def rows(heading: str) -> dict[str, str]:
    """Names and types in the table of a section."""
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section(heading), re.MULTILINE))


def type_name(annotation: object) -> str:
    name = annotation.__name__ if annotation in (str, int, float, bool) else str(annotation)
    return TYPES.get(name.replace("collections.abc.", ""), "object")


def test_the_page_describes_exactly_the_events_that_exist() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == [kind.__name__ for kind in EVENTS]


@pytest.mark.parametrize("kind", EVENTS)
def test_the_page_describes_exactly_the_fields_of_an_event_with_their_types(kind: type[Event]) -> None:
    described = {name: text.partition(",")[0].strip() for name, text in rows(kind.__name__).items()}
    assert described == {each.name: type_name(each.type) for each in fields(kind)}


@pytest.mark.parametrize("kind", EVENTS)
def test_the_example_of_an_event_is_a_line_that_this_version_writes(kind: type[Event]) -> None:
    found = re.search(r"```json\n(.*\n)```", section(kind.__name__))
    assert found
    record = from_line(found[1].encode())
    assert type(record.event) is kind
    assert to_line(record).decode() == found[1]


def test_the_page_describes_exactly_the_keys_of_a_record() -> None:
    assert set(rows("A record")) == {each.name for each in fields(Record)} - {"extra"} | {"fields"}


def test_the_page_describes_exactly_the_fields_of_a_data_card() -> None:
    assert list(rows("The data card")) == [each.name for each in fields(DataCard)]
