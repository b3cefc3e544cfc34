"""Overrides from the command line: `a.b=c` laid over the values of a recipe."""

import re
from typing import Any

from tandem.config.document import Document, Loc, dotted, parse_yaml
from tandem.errors import TandemError

__all__ = ["COMMAND_LINE", "overridden", "parse_key"]

COMMAND_LINE = "command line"
"""The place of values that an override gave."""

_ITEM = re.compile(r"[0-9]{1,6}")


def overridden(document: Document, override: str) -> Document:
    """Return `document` with `override` (`key=value`, the value as YAML) laid over it."""
    key, equals, text = override.partition("=")
    loc = parse_key(key.strip())
    if not equals or "" in loc:
        raise TandemError(
            f"{COMMAND_LINE}: {override!r} is no override; write key=value, as in clean.max_words=100"
        )
    given = parse_yaml(text, origin=f"{COMMAND_LINE}: {override!r}", numbered=False)
    kept = {old: place for old, place in document.places.items() if old[: len(loc)] != loc}
    made = {loc[:length]: COMMAND_LINE for length in range(1, len(loc) + 1)}
    below = {(*loc, *inner): COMMAND_LINE for inner in given.places}
    return Document(
        values=_laid_over(document.values, loc, given.values, done=()), places={**made, **kept, **below}
    )


def parse_key(key: str) -> Loc:
    """Return `data.train.0.weight` as a location."""
    return tuple(int(part) if _ITEM.fullmatch(part) else part for part in key.split("."))


def _laid_over(old: Any, loc: Loc, value: Any, *, done: Loc) -> Any:
    """Return `old` with `value` at `loc` inside it; what is missing on the way is made."""
    if not loc:
        return value
    head, rest = loc[0], loc[1:]
    here = (*done, head)
    if isinstance(old, list) or (old is None and isinstance(head, int)):
        items = old or []
        number = _item_number(items, head, done=done)
        item = items[number] if number < len(items) else None
        return [*items[:number], _laid_over(item, rest, value, done=here), *items[number + 1 :]]
    section = old if isinstance(old, dict) else {}
    return {**section, str(head): _laid_over(section.get(str(head)), rest, value, done=here)}


def _item_number(items: list[Any], head: str | int, *, done: Loc) -> int:
    if not isinstance(head, int):
        raise TandemError(
            f"{COMMAND_LINE}: {dotted(done)} is a list; name an item of it, as in {dotted((*done, 0, head))}"
        )
    if head > len(items):
        raise TandemError(
            f"{COMMAND_LINE}: {dotted((*done, head))} is past the end of a list of {len(items)}; "
            f"the next item is {dotted((*done, len(items)))}"
        )
    return head
