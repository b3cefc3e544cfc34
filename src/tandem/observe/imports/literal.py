"""Reads a dictionary that Python printed, as far as it goes: a torn end loses what is torn and nothing else."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TypeAlias

__all__ = ["Literal", "read_literal"]

Literal: TypeAlias = Mapping[str, "Literal"] | list["Literal"] | str | int | float | bool | None

_DEEPEST = 20
_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[{}\[\](),:])
    |(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<thing><(?:[^<>\n]|<[^<>\n]*>)*>)
    |(?P<number>[-+]?(?:\d{1,18}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?(?![\w.]))
    |(?P<word>[\w.]+))""",
    re.VERBOSE,
)
_WORDS: dict[str, bool | float | None] = {
    "True": True,
    "False": False,
    "None": None,
    "inf": float("inf"),
    "nan": float("nan"),
}
_Token: TypeAlias = tuple[str, str]


class _TornError(Exception):
    """The text ends, or stops making sense."""


def read_literal(text: str) -> dict[str, Literal]:
    """What a printed dictionary holds; objects that have no literal form, such as classes, are texts."""
    found: dict[str, Literal] = {}
    tokens = _Tokens(_tokens(text))
    if tokens.peek() == ("mark", "{"):
        with suppress(_TornError):
            _fill(found, tokens, depth=0)
    return found


class _Tokens:
    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self._next = next(tokens, ("end", ""))

    def peek(self) -> _Token:
        return self._next

    def take(self) -> _Token:
        token = self._next
        if token[0] == "end":
            raise _TornError
        self._next = next(self._tokens, ("end", ""))
        return token


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while found := _TOKEN.match(text, place):
        place = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


def _fill(held: dict[str, Literal], tokens: _Tokens, *, depth: int) -> None:
    """Read a dictionary into one that is there already: what was read before a tear stays."""
    tokens.take()
    while tokens.peek() != ("mark", "}"):
        kind, key = tokens.take()
        if kind != "text" or tokens.take() != ("mark", ":"):
            raise _TornError
        if tokens.peek() == ("mark", "{"):
            inner: dict[str, Literal] = {}
            held[key[1:-1]] = inner
            _fill(inner, tokens, depth=_deeper(depth))
        else:
            value = _value(tokens, depth=depth)
            # A number that ends with the text may have had more digits.
            if tokens.peek() not in {("mark", ","), ("mark", "}")}:
                raise _TornError
            held[key[1:-1]] = value
        if tokens.peek() == ("mark", ","):
            tokens.take()
    tokens.take()


def _value(tokens: _Tokens, *, depth: int) -> Literal:
    kind, text = tokens.take()
    if kind == "number":
        return float(text) if set(text) & set(".eE") else int(text)
    if kind == "word":
        return _WORDS.get(text, text)
    if kind in {"text", "thing"}:
        return text[1:-1] if kind == "text" else text
    if text in "[(":
        return _items(tokens, end="]" if text == "[" else ")", depth=_deeper(depth))
    raise _TornError


def _items(tokens: _Tokens, *, end: str, depth: int) -> list[Literal]:
    items: list[Literal] = []
    while tokens.peek() != ("mark", end):
        if tokens.peek() == ("mark", ","):
            tokens.take()
        elif tokens.peek() == ("mark", "{"):
            inner: dict[str, Literal] = {}
            _fill(inner, tokens, depth=_deeper(depth))
            items.append(inner)
        else:
            items.append(_value(tokens, depth=depth))
    tokens.take()
    return items


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise _TornError
    return depth + 1
