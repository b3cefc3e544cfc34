"""A translation on its way from CTranslate2 to what an engine finds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem.translate.engine import Found, Sentence
from tandem.translate.wish import Wish

__all__ = ["Said", "best_of", "cut", "told", "with_alignment", "with_odds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One translation on its way from CTranslate2."""

    ids: tuple[int, ...]
    """Without the end mark."""
    total: float | None
    """Log-probability, end mark included; None: yet to be asked for."""
    odds: tuple[float, ...] = ()
    """Log-probabilities of the pieces and of the end mark, where they were asked for."""
    alignment: tuple[int, ...] = ()


def cut(said: Said, sentence: Sentence) -> Said:
    """What the sentence's limit leaves of it."""
    return replace(said, ids=said.ids[: sentence.most])


def with_odds(said: Said, odds: tuple[float, ...]) -> Said:
    """The same with the log-probabilities of its pieces."""
    return replace(said, odds=odds, total=sum(odds))


def with_alignment(said: Said, looks: Sequence[Sequence[float]]) -> Said:
    """The same with the source piece that each of its pieces looked at most."""
    steps = looks[: len(said.ids)]
    return replace(said, alignment=tuple(max(range(len(look)), key=look.__getitem__) for look in steps))


def _score(said: Said, wish: Wish) -> float:
    assert said.total is not None
    return said.total if wish.sampling is not None else said.total / wish.penalty.at(len(said.ids) + 1)


def best_of(said: Sequence[Said], wish: Wish) -> list[Said]:
    """The best by our own length penalty, as many as are wanted."""
    scored = ((-_score(each, wish), len(each.ids), place) for place, each in enumerate(said))
    finite = sorted(each for each in scored if math.isfinite(each[0]))
    return [said[place] for _, _, place in finite[: wish.best]]


def told(said: Said, wish: Wish) -> Found:
    """As engines tell it."""
    return Found(
        ids=said.ids,
        score=_score(said, wish),
        token_scores=said.odds if wish.token_scores else (),
        alignment=said.alignment,
    )
