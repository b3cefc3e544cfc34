"""Every key that a recipe may have, with its default and its sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic_core import PydanticUndefined

from tandem.config.document import Loc
from tandem.config.recipe import Recipe
from tandem.config.section import Section

__all__ = ["Key", "recipe_keys", "section_at", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as users write it (`N` stands for the number of a list item), its default and what it means."""

    name: str
    default: str
    sentence: str


def recipe_keys(section: type[Section] = Recipe, prefix: str = "") -> Iterator[Key]:
    """Yield the keys of `section` and of the sections in it, in the order of the code."""
    for name, field in section.model_fields.items():
        inner = _section_in(field.annotation)
        if inner is None:
            default = "required" if field.default is PydanticUndefined else shown(field.default)
            yield Key(name=prefix + name, default=default, sentence=field.description or "")
        else:
            item = "N." if get_origin(field.annotation) is tuple else ""
            yield from recipe_keys(inner, f"{prefix}{name}.{item}")


def section_at(loc: Loc) -> type[Section]:
    """Return the section that the keys on the way to `loc` lead to."""
    section: type[Section] = Recipe
    for part in loc:
        if isinstance(part, str) and (inner := _section_in(section.model_fields[part].annotation)):
            section = inner
    return section


def shown(value: object) -> str:
    """Return `value` as it would be written in a recipe, on one line that is safe to print."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if value == ():
        return "[]"
    text = str(value)
    return text if text.isprintable() else ascii(text)


def _section_in(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)
