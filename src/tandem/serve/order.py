"""What a request asks for: our own format and LibreTranslate's, checked and brought into one form."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tandem.serve.catalogue import Catalogue
from tandem.serve.hypertext import Hypertext, build_hypertext
from tandem.serve.limits import MOST_BEAM, MOST_BEST, MOST_FIELDS, MOST_LINE_CHARACTERS, Limits
from tandem.serve.served import ServedModel
from tandem.translate.penalty import LengthPenalty
from tandem.translate.wish import Wish
from tandem.web.refusal import Refusal

__all__ = [
    "DetectRequest",
    "LibreRequest",
    "Order",
    "TranslateRequest",
    "build_order",
    "checked",
    "split_lines",
]

Shape = TypeVar("Shape", bound=BaseModel)

LINE_END = re.compile("\r\n|\r|\n")

_IN_PARTS_OF_LINES = "send it in parts, or serve with a larger --most-sentences."


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)
"""JSON has but one kind of number: 2.0 is 2."""


class TranslateRequest(BaseModel):
    """One text or many."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True, frozen=True
    )

    text: str | list[str]
    """What to translate; line breaks stay where they are."""
    source: str | None = None
    """Language of the text; needed only where several models translate into the target language."""
    target: str | None = None
    """Language to translate into; needed only where there are several."""
    model: str | None = None
    """Name of the model, as `/models` lists them."""
    beam: Annotated[int, Field(ge=1, le=MOST_BEAM), Whole] | None = None
    """Translations followed side by side; at least as many as `best`. The model's own if not given."""
    best: Annotated[int, Field(ge=1, le=MOST_BEST), Whole] = 1
    """How many translations of each text to tell."""
    length_penalty: Annotated[float, Field(ge=0, le=10)] | None = None
    """How strongly the search makes up for length; the model's own if not given."""
    alignment: bool = False
    """Tell which characters came of which."""
    api_key: str | None = None
    """A key of the server, where it asks for one; better sent as a header."""


class LibreRequest(BaseModel):
    """LibreTranslate's format."""

    model_config = ConfigDict(
        extra="ignore", strict=True, allow_inf_nan=False, use_attribute_docstrings=True, frozen=True
    )

    q: str | list[str]
    """What to translate; line breaks stay where they are."""
    source: str
    """Language of the text, or `auto`."""
    target: str
    """Language to translate into."""
    format: Literal["text", "html"] = "text"
    """With `html` the text between tags is translated, and the markup stays as it is."""
    alternatives: Annotated[int, Field(ge=0, le=MOST_BEST - 1), Whole] = 0
    """How many more translations to tell."""
    api_key: str | None = None
    """A key of the server, where it asks for one."""


class DetectRequest(BaseModel):
    """LibreTranslate's format of asking for a language."""

    model_config = ConfigDict(extra="ignore", strict=True, use_attribute_docstrings=True, frozen=True)

    q: str
    """The text."""
    api_key: str | None = None
    """A key of the server, where it asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request that can be carried out."""

    texts: tuple[str, ...]
    lines: tuple[str, ...]
    """What is to be translated of all texts, one after the other."""
    is_one: bool
    """The text came alone rather than in a list."""
    is_libre: bool
    model: ServedModel
    wish: Wish
    pages: tuple[Hypertext, ...] = ()
    """The texts, where they are HTML."""
    detected: tuple[str, float] | None = None
    """Language and certainty, 0 to 1, where the server was left to find the language."""


def checked(shape: type[Shape], fields: dict[str, Any]) -> Shape:
    """The fields as this shape says, or the first thing that is wrong with them in one sentence."""
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    # A union's places name its members; nobody sent those.
    name = str(first["loc"][0])[:40]
    if first["type"] == "missing":
        raise Refusal(422, f"{name} is missing.")
    if first["type"] == "extra_forbidden":
        raise Refusal(422, f"There is no field {name!r}; /openapi.json lists those there are.")
    raise Refusal(422, f"{name} is wrong: {first['msg'][:1].lower()}{first['msg'][1:]}.")


def build_order(fields: dict[str, Any], catalogue: Catalogue, limits: Limits) -> Order:
    """What the fields of a body ask for."""
    if len(fields) > MOST_FIELDS:
        raise Refusal(422, f"There are {len(fields):,} fields; /openapi.json lists those there are.")
    _check_list("q" if "q" in fields else "text", fields, limits)
    if "q" in fields:
        return _libre_order(checked(LibreRequest, fields), catalogue, limits)
    asked = checked(TranslateRequest, fields)
    texts = _texts(asked.text, limits)
    lines = _checked_lines(texts, (), limits)
    model = catalogue.find(name=asked.model, source=asked.source, target=asked.target)
    beam = max(asked.best, asked.beam or model.wish.beam)
    penalty = (
        model.wish.penalty if asked.length_penalty is None else LengthPenalty(alpha=asked.length_penalty)
    )
    wish = replace(model.wish, beam=beam, best=asked.best, penalty=penalty, alignment=asked.alignment)
    return Order(
        texts=texts,
        lines=lines,
        is_one=isinstance(asked.text, str),
        is_libre=False,
        model=model,
        wish=wish,
    )


def _check_list(name: str, fields: dict[str, Any], limits: Limits) -> None:
    """Refuse at the first fault of a long list; pydantic would describe each."""
    given = fields.get(name)
    if not isinstance(given, list):
        return
    if len(given) > limits.sentences:
        raise Refusal(
            413,
            f"There are {len(given):,} texts, but a request may have {limits.sentences:,} lines: {_IN_PARTS_OF_LINES}",
        )
    if not all(isinstance(text, str) for text in given):
        raise Refusal(422, f"{name} is wrong: a list may hold texts only.")


def _libre_order(asked: LibreRequest, catalogue: Catalogue, limits: Limits) -> Order:
    texts = _texts(asked.q, limits)
    pages = tuple(map(build_hypertext, texts)) if asked.format == "html" else ()
    lines = _checked_lines(texts, pages, limits)
    detected = None
    source = asked.source
    if source == "auto":
        detected = catalogue.detect(" ".join(lines), target=asked.target)
        source = detected[0]
    model = catalogue.find(source=source, target=asked.target)
    best = asked.alternatives + 1
    alignment = any(page.needs_alignment for page in pages)
    wish = replace(model.wish, best=best, beam=max(best, model.wish.beam), alignment=alignment)
    return Order(
        texts=texts,
        lines=lines,
        is_one=isinstance(asked.q, str),
        is_libre=True,
        model=model,
        wish=wish,
        pages=pages,
        detected=detected,
    )


def _texts(given: str | list[str], limits: Limits) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise Refusal(
            413,
            f"There are {characters:,} characters, but a request may have {limits.characters:,}: send it in parts, "
            "or serve with a larger --most-characters.",
        )
    return tuple(texts)


def _checked_lines(texts: Iterable[str], pages: Sequence[Hypertext], limits: Limits) -> tuple[str, ...]:
    """The lines of all texts, or of the pages that they are."""
    if pages:
        lines, what = tuple(line for page in pages for line in page.lines), "text{} between tags"
    else:
        lines, what = tuple(line for text in texts for line in split_lines(text)), "line{}"
    if len(lines) > limits.sentences:
        raise Refusal(
            413,
            f"There are {len(lines):,} {what.format('s')}, but a request may have {limits.sentences:,}: "
            f"{_IN_PARTS_OF_LINES}",
        )
    longest = max(map(len, lines), default=0)
    if longest > MOST_LINE_CHARACTERS:
        raise Refusal(
            413,
            f"A {what.format('')} has {longest:,} characters, but one may have {MOST_LINE_CHARACTERS:,}: "
            "break it between sentences.",
        )
    return lines


def split_lines(text: str) -> list[str]:
    """The lines of a text: each is translated for itself."""
    return LINE_END.split(text)
