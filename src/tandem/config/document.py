"""YAML as plain values that remember where each was written."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tandem.errors import TandemError
from tandem.files import UnfitFileError, open_regular, require_regular

__all__ = ["NUMBER", "Document", "Loc", "dotted", "parse_yaml", "read_document", "read_values"]

Loc: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys, and numbers of list items."""

_MOST_BYTES = 256 * 1024
_MOST_VALUES = 10_000
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}

# YAML 1.2's plain values, with the underscores of 1.1: there, `no` would be false and 1e-9 a text.
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]{0,30}")
NUMBER = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
"""What a plain value that is a number looks like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain values, and the place (`file:line`) of every key and list item among them."""

    values: Any
    places: Mapping[Loc, str]

    def place(self, loc: Loc) -> str:
        """Return where the value at `loc` was written, or else what was to hold it."""
        while loc not in self.places:
            loc = loc[:-1]
        return self.places[loc]


def dotted(loc: Loc) -> str:
    """Return `loc` as users write it: `data.train.0.weight`."""
    return ".".join(map(str, loc))


def read_document(path: Path) -> Document:
    """Read a YAML file that holds keys and values; TandemError with line and cure for anything else."""
    document = parse_yaml(_read_text(path), origin=str(path), numbered=True)
    if document.values is None:
        raise TandemError(f"{path} is empty; a recipe needs at least a name and data.")
    if not isinstance(document.values, dict):
        kind = "a list" if isinstance(document.values, list) else "a single value"
        raise TandemError(f"{path} holds {kind} at its top; a recipe is keys and values, as in `name: demo`.")
    return document


def read_values(path: Path) -> Mapping[str, Any]:
    """What a run's recipe says, unchecked; empty where there is none, or none that can be read."""
    with suppress(TandemError):
        require_regular(path)
        values: Mapping[str, Any] = read_document(path).values
        return values
    return {}


def parse_yaml(text: str, *, origin: str, numbered: bool) -> Document:
    """Return the values of YAML text from `origin`, which places follow with a line number if `numbered`."""
    reader = _Reader(origin, numbered=numbered)
    try:
        loader = yaml.BaseLoader(text)
        node = loader.get_single_node()
        values = None if node is None else reader.value(node, ())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        where = f"{origin}:{line}" if numbered else origin
        raise TandemError(
            f"{where}: character U+{_code(error):04X} is not allowed in YAML; take it out"
        ) from None
    except yaml.MarkedYAMLError as error:
        raise TandemError(reader.syntax_error(error)) from None
    except RecursionError:
        raise TandemError(
            f"{origin}: values are nested too deeply; a recipe needs no more than a few levels"
        ) from None
    return Document(values=values, places={(): origin, **reader.places})


class _Reader:
    """Turns YAML nodes into plain values and keeps their places."""

    def __init__(self, origin: str, *, numbered: bool) -> None:
        self.places: dict[Loc, str] = {}
        self._origin = origin
        self._numbered = numbered
        self._values_left = _MOST_VALUES

    def value(self, node: yaml.Node, loc: Loc) -> Any:
        """Return the plain value of `node`, which belongs at `loc`."""
        self._values_left -= 1
        if self._values_left < 0:
            raise TandemError(
                f"{self._origin}: more than {_MOST_VALUES} values with anchors expanded; write fewer"
            )
        if node.tag not in _TAGS:
            raise TandemError(f"{self._place(node)}: a recipe uses no tags; take out {node.tag!r}")
        if isinstance(node, yaml.MappingNode):
            return self._section(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self._child(item, (*loc, number), item) for number, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node)

    def syntax_error(self, error: yaml.MarkedYAMLError) -> str:
        """Return the sentence for text that is not YAML, with line and column."""
        mark = error.problem_mark or error.context_mark
        where = self._origin
        if mark is not None and self._numbered:
            where = f"{where}:{mark.line + 1}:{mark.column + 1}"
        if error.problem and "'\\t'" in error.problem:
            return f"{where}: a tab where YAML wants spaces; indent with spaces"
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        return f"{where}: this is not YAML ({reason})"

    def _section(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        section: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise TandemError(f"{self._place(key_node)}: a key must be a word, not a list or a section")
            key = self._text(key_node)
            child = (*loc, key)
            if key in section:
                twice = f"{dotted(child)!r} is written twice, first at {self.places[child]}; take one out"
                raise TandemError(f"{self._place(key_node)}: {twice}")
            section[key] = self._child(value_node, child, key_node)
        return section

    def _child(self, node: yaml.Node, loc: Loc, written: yaml.Node) -> Any:
        self.places[loc] = self._place(written)
        return self.value(node, loc)

    def _scalar(self, node: yaml.ScalarNode) -> str | int | float | bool | None:
        text = self._text(node)
        if node.style is not None:
            return text
        if text in {text.lower(), text.upper(), text.capitalize()} and text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if _WHOLE.fullmatch(text):
            return int(text.replace("_", ""))
        return float(text.replace("_", "")) if NUMBER.fullmatch(text) else text

    def _text(self, node: yaml.ScalarNode) -> str:
        text: str = node.value
        # An escape such as "\0" or "\ud800" can write what no file name or terminal takes.
        if "\0" in text or text.encode(errors="ignore").decode() != text:
            raise TandemError(f"{self._place(node)}: {text!a} holds a character that is no text; take it out")
        return text

    def _place(self, node: yaml.Node) -> str:
        return f"{self._origin}:{node.start_mark.line + 1}" if self._numbered else self._origin


def _code(error: yaml.reader.ReaderError) -> int:
    return error.character if isinstance(error.character, int) else ord(error.character)


def _read_text(path: Path) -> str:
    try:
        # The user named it, so that it may be a link, but no pipe that may never say anything.
        with open_regular(path, links=True) as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise TandemError(f"There is no recipe {path}; check the path.") from None
    except UnfitFileError:
        raise
    except OSError as error:
        raise TandemError(f"The recipe {path} cannot be read: {error.strerror}.") from None
    if len(content) > _MOST_BYTES:
        raise TandemError(
            f"{path} is larger than {_MOST_BYTES // 1024} KiB, which no recipe is; check the path."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TandemError(f"{path}:{line}: this line is not UTF-8 text; save the file as UTF-8") from None
