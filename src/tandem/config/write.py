"""A resolved recipe as YAML on disk."""

import os
from pathlib import Path

import yaml

from tandem.config.document import NUMBER
from tandem.config.recipe import Recipe
from tandem.errors import TandemError

__all__ = ["write_recipe", "write_text"]


class _Dumper(yaml.SafeDumper):
    """Quotes what would be read back as something else: 1e5, and odd line ends such as U+0085."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write `recipe` so that loading it gives an equal one; unset values are left out."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    write_text(path, yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def write_text(path: Path, text: str) -> None:
    """Write `text` beside `path` and rename it there, so that `path` is never half-written."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise TandemError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        beside.unlink(missing_ok=True)
