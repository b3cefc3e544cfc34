"""A resolved recipe as YAML."""

from pathlib import Path
from typing import Any

import yaml

from tandem.config.document import NUMBER
from tandem.config.recipe import Recipe
from tandem.config.section import Section

__all__ = ["recipe_yaml"]


class _Dumper(yaml.SafeDumper):
    """Quotes what would be read back as something else: 1e5, and odd line ends such as U+0085."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))


def recipe_yaml(recipe: Recipe) -> str:
    """The recipe as YAML that loads as an equal one; unset values are left out."""
    return str(yaml.dump(_plain(recipe), Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        fields = type(value).model_fields.items()
        # An empty value is written where leaving it out would mean something else.
        return {
            name: _plain(inner)
            for name, field in fields
            if (inner := getattr(value, name)) is not None or field.default is not None
        }
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
