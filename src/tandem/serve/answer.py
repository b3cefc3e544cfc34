"""What is answered: lines put together to texts or pages again, in our own format or LibreTranslate's."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tandem.serve.hypertext import Hypertext
from tandem.serve.order import Order, split_lines
from tandem.translate.translator import Link, Translation

__all__ = ["build_answer"]


def build_answer(order: Order, found: Sequence[Translation]) -> dict[str, Any]:
    """The body of the answer, from the translations of the order's lines."""
    texts = list(_texts(order, found))
    if order.is_libre:
        return _libre(order, texts)
    return {
        "model": order.model.name,
        "source": order.model.source,
        "target": order.model.target,
        "translations": [_own(order, text) for text in texts],
    }


def _texts(order: Order, found: Sequence[Translation]) -> Iterator[Translation]:
    left = iter(found)
    if order.pages:
        for page in order.pages:
            yield _rewritten(page, list(islice(left, len(page.lines))))
        return
    for text in order.texts:
        lines = split_lines(text)
        yield _joined(text, lines, list(islice(left, len(lines))))


def _joined(text: str, lines: Sequence[str], found: Sequence[Translation]) -> Translation:
    """The translation of a text of several lines; its n-th best is made of the n-th best of each line."""
    if len(found) == 1:
        return found[0]
    first = _stacked(found)
    return Translation(
        text=first.text,
        score=first.score,
        pieces=first.pieces,
        others=tuple(map(_stacked, _next_best(found))),
        alignment=tuple(_moved_links(text, lines, found)),
    )


def _rewritten(page: Hypertext, found: Sequence[Translation]) -> Translation:
    """The translation of a page; its n-th best is made of the n-th best of each line."""
    first, *others = (
        replace(_stacked(each), text=page.rewritten(each)) for each in (found, *_next_best(found))
    )
    return replace(first, others=tuple(others))


def _next_best(found: Sequence[Translation]) -> Iterator[list[Translation]]:
    """The second best of each line, the third of each, …; of a line with fewer the last serves again."""
    for rank in range(max((len(each.others) for each in found), default=0)):
        yield [each.others[min(rank, len(each.others) - 1)] if each.others else each for each in found]


def _stacked(found: Sequence[Translation]) -> Translation:
    return Translation(
        text="\n".join(each.text for each in found),
        score=sum(each.score for each in found),
        pieces=sum(each.pieces for each in found),
    )


def _moved_links(text: str, lines: Sequence[str], found: Sequence[Translation]) -> Iterator[Link]:
    """Links from places in lines to places in the whole text."""
    source = target = 0
    for line, each in zip(lines, found, strict=True):
        source = text.index(line, source)
        for link in each.alignment:
            yield Link(
                source=(link.source[0] + source, link.source[1] + source),
                target=(link.target[0] + target, link.target[1] + target),
            )
        source += len(line)
        target += len(each.text) + 1


def _own(order: Order, each: Translation) -> dict[str, Any]:
    told: dict[str, Any] = {"text": each.text, "score": _number(each.score)}
    if order.wish.best > 1:
        told["others"] = [{"text": other.text, "score": _number(other.score)} for other in each.others]
    if order.wish.alignment:
        told["alignment"] = [{"source": link.source, "target": link.target} for link in each.alignment]
    return told


def _number(score: float) -> float | None:
    return score if math.isfinite(score) else None  # JSON knows no infinity


def _libre(order: Order, texts: list[Translation]) -> dict[str, Any]:
    told: dict[str, Any] = {"translatedText": _one_or_all(order, [each.text for each in texts])}
    if order.wish.best > 1:
        told["alternatives"] = _one_or_all(order, [[other.text for other in each.others] for each in texts])
    if order.detected is not None:
        code, share = order.detected
        found = {"language": code, "confidence": round(100 * share, 1)}
        told["detectedLanguage"] = _one_or_all(order, [found] * len(texts))
    return told


def _one_or_all(order: Order, values: list[Any]) -> Any:
    return values[0] if order.is_one else values
