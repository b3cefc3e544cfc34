"""From a recipe file and overrides to a checked recipe that knows where each value came from."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tandem.config.complaints import complaints
from tandem.config.document import Loc, dotted, read_document
from tandem.config.keys import section_at, shown
from tandem.config.overrides import COMMAND_LINE, overridden
from tandem.config.recipe import Recipe
from tandem.config.section import Section
from tandem.errors import TandemError

__all__ = ["LoadedRecipe", "leaves", "load_recipe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRecipe:
    """A checked recipe, and for each dotted key where its value came from."""

    recipe: Recipe
    origins: Mapping[str, str]
    """Dotted key to `file:line`, `command line`, `default`, or `derived` from another key such as a preset."""

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield key, value and origin of everything that is set or has a default, as text."""
        for loc, value in leaves(self.recipe):
            key = dotted(loc)
            if value is not None or self.origins[key] != "default":
                yield key, shown(value), self.origins[key]


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Read the recipe at `path` and lay `overrides` (`a.b=c`) over it; TandemError has a line a mistake."""
    document = read_document(path)
    mistakes: list[str] = []
    for override in overrides:
        try:
            document = overridden(document, override)
        except TandemError as error:
            mistakes.append(str(error))

    def base(loc: Loc) -> Path:
        return Path.cwd() if document.place(loc) == COMMAND_LINE else path.parent.resolve()

    try:
        recipe = Recipe.model_validate(document.values)
        # Once more, because only whole paths tell that two of them name the same thing.
        recipe = Recipe.model_validate(_anchored(recipe, (), base).model_dump())
    except ValidationError as error:
        mistakes.extend(complaints(error, document))
    if mistakes:
        raise TandemError("\n".join(mistakes))
    origins = {
        dotted(loc): document.places.get(loc) or _unwritten_origin(loc, value)
        for loc, value in leaves(recipe)
    }
    return LoadedRecipe(recipe=recipe, origins=origins)


def leaves(value: object, loc: Loc = ()) -> Iterator[tuple[Loc, object]]:
    """Yield the location and value of everything in a section that is not a section itself."""
    if isinstance(value, Section):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name), (*loc, name))
    elif isinstance(value, tuple) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*loc, number))
    else:
        yield loc, value


def _unwritten_origin(loc: Loc, value: object) -> str:
    default = section_at(loc[:-1]).model_fields[str(loc[-1])].default
    return "default" if value == default else "derived"


def _anchored(value: Any, loc: Loc, base: Callable[[Loc], Path]) -> Any:
    """Return `value` with every path in it made absolute, starting from the base of its location."""
    if isinstance(value, Path):
        # Links stay as they are: what a link is called says which compression and language it holds.
        return Path(os.path.normpath(base(loc) / _home_expanded(value)))
    if isinstance(value, tuple):
        return tuple(_anchored(item, (*loc, number), base) for number, item in enumerate(value))
    if isinstance(value, Section):
        names = type(value).model_fields
        return value.model_copy(
            update={name: _anchored(getattr(value, name), (*loc, name), base) for name in names}
        )
    return value


def _home_expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise TandemError(
            f"The recipe names {path}, but there is no such user here; write the whole path."
        ) from None
