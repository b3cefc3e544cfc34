"""Translations as lines of output: the text alone, columns, or JSON."""

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.translate.translator import Translation

__all__ = ["Format", "Write", "build_writer", "choose_format"]

Format: TypeAlias = Literal["text", "tsv", "json"]

Write: TypeAlias = "Callable[[Translation, int], Iterator[str]]"
"""The lines for the translation of the input's line of that number, which counts from 1."""


def choose_format(asked: Format | None, *, scores: bool, details: bool, best: int) -> Format:
    """The simplest format that can hold what is told; `details` are pieces' scores and alignment."""
    if details and asked in {"text", "tsv"}:
        raise TandemError(f"--format {asked} has no place for --tokens and --alignment: take --format json.")
    if scores and asked == "text":
        raise TandemError("--format text has no place for --scores: take --format tsv or json.")
    if asked is not None:
        return asked
    if details:
        return "json"
    return "tsv" if scores or best > 1 else "text"


def build_writer(kind: Format, *, tokens: bool = False, alignment: bool = False) -> Write:
    """What makes lines of a translation; JSON with pieces' scores and alignment where they were asked for."""
    json_lines = partial(_json, tokens=tokens, alignment=alignment)
    writers: dict[Format, Write] = {"text": _text, "tsv": _columns, "json": json_lines}
    return writers[kind]


def _text(translation: "Translation", _: int) -> Iterator[str]:
    yield from (each.text for each in (translation, *translation.others))


def _columns(translation: "Translation", number: int) -> Iterator[str]:
    for rank, each in enumerate((translation, *translation.others), start=1):
        yield "\t".join([str(number), str(rank), f"{each.score:.4f}", each.text.replace("\t", " ")])


def _json(translation: "Translation", number: int, *, tokens: bool, alignment: bool) -> Iterator[str]:
    described = _described(translation, tokens=tokens, alignment=alignment)
    yield json.dumps({"line": number, **described}, ensure_ascii=False)


def _described(translation: "Translation", *, tokens: bool, alignment: bool) -> dict[str, Any]:
    # JSON has no infinity, which says that the model gave no translation.
    score = translation.score if math.isfinite(translation.score) else None
    described: dict[str, Any] = {"text": translation.text, "score": score, "pieces": translation.pieces}
    if tokens:
        described["tokens"] = [[token.text, token.score] for token in translation.tokens]
    if alignment:
        described["alignment"] = [[link.source, link.target] for link in translation.alignment]
    if translation.others:
        described["others"] = [
            _described(each, tokens=tokens, alignment=alignment) for each in translation.others
        ]
    return described
