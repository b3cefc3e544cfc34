"""What is wrong with a recipe, one line a mistake: where, which key, and the cure."""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tandem.config.document import Document, Loc, dotted
from tandem.config.keys import recipe_keys, section_at
from tandem.config.overrides import parse_key
from tandem.config.section import ContradictionError

__all__ = ["complaints"]

_LONGEST_VALUE = 60

_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text (quotes make text of anything)",
    "tuple_type": "a list",
    "too_short": "a list of at least one item",
    "model_type": "a section of keys and values",
    "is_instance_of": "a path",
}


def complaints(error: ValidationError, document: Document) -> Iterator[str]:
    """Yield a line for each mistake that pydantic found in the values of `document`."""
    for detail in error.errors(include_url=False):
        # pydantic also calls a list too short when the items in it are wrong, which is said elsewhere.
        if detail["type"] == "too_short" and detail["input"]:
            continue
        for loc, sentence in _mistakes(detail):
            yield f"{document.place(loc)}: {sentence}"


def _mistakes(detail: ErrorDetails) -> Iterator[tuple[Loc, str]]:
    loc, kind = detail["loc"], detail["type"]
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, ContradictionError):
        for key, sentence in cause.found:
            inner = (*loc, *parse_key(key)) if key else loc
            yield inner, f"{dotted(inner)} {sentence}"
    elif kind == "extra_forbidden":
        yield loc, f"unknown key {dotted(loc)!r}; {_suggestion(loc)}"
    elif kind == "missing":
        yield loc, f"{dotted(loc)} is missing: {_sentence_of(loc)}"
    elif kind == "string_pattern_mismatch":
        yield loc, f"{dotted(loc)} cannot be {_quoted(detail['input'])}: {_sentence_of(loc)}"
    else:
        expected = _EXPECTED.get(kind) or detail["msg"].removeprefix("Input should be ")
        yield loc, f"{dotted(loc)} must be {expected}, not {_quoted(detail['input'])}"


def _suggestion(loc: Loc) -> str:
    *above, key = loc
    valid = list(section_at(loc[:-1]).model_fields)
    if near := get_close_matches(str(key).lower(), valid, n=1):
        return f"did you mean {dotted((*above, near[0]))!r}?"
    if elsewhere := [known.name for known in recipe_keys() if known.name.endswith(f".{key}")]:
        return f"did you mean {elsewhere[0]!r}?"
    return f"the keys here are {', '.join(valid)}"


def _sentence_of(loc: Loc) -> str:
    field = section_at(loc[:-1]).model_fields[str(loc[-1])]
    return (field.description or "").rstrip(".")


def _quoted(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, list | dict):
        return ("a " if value else "an empty ") + ("list" if isinstance(value, list) else "section")
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
