"""A model small enough to be searched whole: the next id's odds are looked up by all that was said before."""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

from tandem.translate.beam import Hypothesis, Search, Start, beam_search
from tandem.translate.marks import Marks

START, END, BANNED = 0, 1, 2
MARKS = Marks(start=START, end=END, banned=(START, BANNED))

Ids = tuple[int, ...]


@cache
def random_logits(seed: int, said: Ids, vocabulary: int) -> tuple[float, ...]:
    draw = random.Random(repr((seed, said)))
    return tuple(draw.gauss(0, 2) for _ in range(vocabulary))


class TableModel:
    """Rows of sentences, each with what was said so far; sentences are seeds of random tables."""

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        beam: int,
        vocabulary: int,
        table: Mapping[Ids, Sequence[float]] | None = None,
    ) -> None:
        self.rows: list[tuple[int, Ids]] = [(seed, ()) for seed in seeds for _ in range(beam)]
        self.vocabulary = vocabulary
        self.table = table
        self.rows_searched: list[int] = []

    def step(self, ids_R: Tensor) -> Tensor:
        self.rows = [(seed, (*said, int(last))) for (seed, said), last in zip(self.rows, ids_R, strict=True)]
        self.rows_searched.append(len(self.rows))
        return torch.tensor([self.logits(seed, said[1:]) for seed, said in self.rows])

    def select(self, rows: Tensor, /, *, same_sentences: bool) -> None:
        before = [seed for seed, _ in self.rows]
        self.rows = [self.rows[row] for row in rows.tolist()]
        assert same_sentences == ([seed for seed, _ in self.rows] == before)

    def logits(self, seed: int, said: Ids) -> Sequence[float]:
        if self.table is None:
            return random_logits(seed, said, self.vocabulary)
        # An empty place of the beam may hold anything.
        odds = self.table.get(said, [1.0] * self.vocabulary)
        return [float(log) for log in torch.tensor(odds).log()]

    def search(
        self, limits: Sequence[int], search: Search, *, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        starts = [Start(*each) for each in zip(limits, prefixes or [()] * len(limits), strict=True)]
        return beam_search(
            self.step, self.select, starts, search=search, marks=MARKS, device=torch.device("cpu")
        )


def all_hypotheses(
    seed: int, limit: int, vocabulary: int, search: Search, *, prefix: Ids = ()
) -> list[Hypothesis]:
    """Every hypothesis within the limit that begins with the prefix, best first, by going through all of them."""

    def ends(said: Ids, total: float) -> Iterator[Hypothesis]:
        odds = (
            torch.tensor(random_logits(seed, said, vocabulary), dtype=torch.float64).log_softmax(0).tolist()
        )
        length = len(said) + 1
        if len(said) < len(prefix):
            forced = prefix[len(said)]
            yield from ends((*said, forced), total + odds[forced])
            return
        yield Hypothesis(ids=said, score=(total + odds[END]) / search.penalty.at(length))
        for piece in set(range(vocabulary)) - {END, *MARKS.banned}:
            if length <= limit:
                yield from ends((*said, piece), total + odds[piece])

    return sorted(ends((), 0.0), key=lambda hypothesis: -hypothesis.score)


def plain_search(seed: int, limit: int, vocabulary: int, search: Search) -> list[Hypothesis]:
    """Beam search as textbooks have it, one hypothesis after the other and up to the limit, best first.

    Of twice as many candidates as the beam has places, those that end among the first ones are kept, and the best of
    the others go on.
    """
    live: list[tuple[float, Ids]] = [(0.0, ())]
    kept: list[Hypothesis] = []
    for length in range(limit + 1):
        candidates: list[tuple[float, Ids, int]] = []
        for total, said in live:
            odds = torch.tensor(random_logits(seed, said, vocabulary)).log_softmax(0).tolist()
            pieces = {END} if length == limit else set(range(vocabulary)) - set(MARKS.banned)
            candidates += [(total + odds[piece], said, piece) for piece in pieces]
        candidates.sort(key=lambda each: -each[0])
        kept += [
            Hypothesis(ids=said, score=total / search.penalty.at(length + 1))
            for total, said, piece in candidates[: search.beam]
            if piece == END
        ]
        going = [(total, (*said, piece)) for total, said, piece in candidates if piece != END]
        live = going[: search.beam]
    return sorted(kept, key=lambda hypothesis: -hypothesis.score)
