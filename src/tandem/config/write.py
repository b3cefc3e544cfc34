"""A resolved recipe as YAML."""

import yaml

from tandem.config.document import NUMBER
from tandem.config.recipe import Recipe

__all__ = ["recipe_yaml"]


class _Dumper(yaml.SafeDumper):
    """Quotes what would be read back as something else: 1e5, and odd line ends such as U+0085."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))


def recipe_yaml(recipe: Recipe) -> str:
    """The recipe as YAML that loads as an equal one; unset values are left out."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
