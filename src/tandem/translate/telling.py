"""What was found for the parts of a line, told as one translation of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tandem.data.subword.learn import Subword
from tandem.translate.alignment import Link, Span, build_links, locate_words, piece_spans
from tandem.translate.engine import Found
from tandem.translate.split import join_texts
from tandem.translate.wish import Wish

__all__ = ["Part", "Token", "Translation", "tell"]

END = "</s>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of a translation and its log-probability."""

    text: str
    """As the subword model spells it; `</s>` where a sentence ends."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One line's translation, without line breaks."""

    text: str
    score: float
    """Log-probability divided by the length penalty; of a line in parts, the parts' sum by that of their length.

    Of a sample it is undivided. An empty line has 0, and minus infinity says that the model gave no translation.
    """
    pieces: int
    others: tuple["Translation", ...] = ()
    """The next best, where more than one was asked for."""
    tokens: tuple[Token, ...] = ()
    """Pieces and end marks with their log-probabilities, where those were asked for."""
    alignment: tuple[Link, ...] = ()
    """Words that belong together, where that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A sentence of a line, and a translation of it."""

    source: tuple[int, ...]
    found: Found


def tell(parts: Sequence[Part], *, subword: Subword, given: str, wish: Wish) -> Translation:
    """The translation of a line `given`, of which these are the parts in order; without any it is empty."""
    texts = [_text(subword, part.found.ids) for part in parts]
    text = join_texts(texts)
    return Translation(
        text=text,
        score=_score([part.found for part in parts], wish),
        pieces=sum(len(part.found.ids) for part in parts),
        tokens=tuple(token for part in parts for token in _tokens(subword, part.found)),
        alignment=_links(parts, texts, subword=subword, given=given) if wish.alignment else (),
    )


def _text(subword: Subword, ids: Sequence[int]) -> str:
    # Pieces that stand for bytes can spell a line break.
    return subword.target.decode(ids).replace("\n", " ").replace("\r", " ")


def _score(found: Sequence[Found], wish: Wish) -> float:
    if len(found) == 1:
        return found[0].score
    if wish.sampling is not None:
        return sum(each.score for each in found)
    total = sum(each.score * wish.penalty.at(len(each.ids) + 1) for each in found)
    return total / wish.penalty.at(sum(len(each.ids) + 1 for each in found)) if found else 0.0


def _tokens(subword: Subword, found: Found) -> list[Token]:
    if not found.token_scores:
        return []
    spelled = [*subword.target.spell(found.ids), END]
    return [Token(text=text, score=score) for text, score in zip(spelled, found.token_scores, strict=True)]


def _links(parts: Sequence[Part], texts: Sequence[str], *, subword: Subword, given: str) -> tuple[Link, ...]:
    pairs: list[tuple[Span, Span]] = []
    start = 0
    for part, text, shift in zip(parts, texts, _shifts(texts), strict=True):
        read = subword.source.decode(part.source)
        locate, start = locate_words(read, given, start=start)
        looked = piece_spans(subword.source.decode, part.source, read)
        said = piece_spans(lambda ids: _text(subword, ids), part.found.ids, text)
        pairs += [
            (locate(looked[place]), (first + shift, last + shift))
            for place, (first, last) in zip(part.found.alignment, said, strict=True)
        ]
    return build_links(pairs, source=given, target=join_texts(texts))


def _shifts(texts: Sequence[str]) -> list[int]:
    """Where in the joined text each part begins."""
    joined = accumulate(texts, lambda before, text: join_texts([before, text]))
    return [len(whole) - len(text) for whole, text in zip(joined, texts, strict=True)]
