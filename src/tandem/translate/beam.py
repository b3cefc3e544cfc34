"""Beam search over many sentences at once.

A hypothesis is a row of pieces and the end mark. At each step the beam holds the best continuations of all that it
held before; those that end leave their places for one step and are kept apart, by their score. A sentence is done when
no live hypothesis can come to a better score than those kept: greedy search is a beam of 1.
"""

# Shapes: B sentences still searched, K places of the beam, R = B * K rows, V vocabulary, C candidates of a row,
# J = K * C candidates of a sentence, N hypotheses asked for of each sentence, H hypotheses of all, F places of the
# longest prefix.

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tandem.translate.marks import Marks
from tandem.translate.penalty import LengthPenalty

__all__ = ["Hypothesis", "Search", "Select", "Start", "beam_search"]

NEVER = float("-inf")
FREE = -1
"""Stands where a prefix forces nothing."""

CLOSE_EVERY = {"cuda": 8}
"""Steps from one look at which sentences are done to the next: each makes a GPU wait for the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How wide to look, and what counts as better."""

    beam: int = 4
    best: int = 1
    """Hypotheses wanted for each sentence, at most; the beam is at least as wide."""
    penalty: LengthPenalty = field(default_factory=LengthPenalty)

    def __post_init__(self) -> None:
        """Refuse a search that could not find what is asked for."""
        if not 1 <= self.best <= self.beam:
            raise ValueError(f"a beam of {self.beam} cannot give the {self.best} best hypotheses")


class Start(NamedTuple):
    """Where the search for a sentence's translation begins, and where it must end."""

    most: int
    """Pieces of the longest hypothesis."""
    prefix: tuple[int, ...] = ()
    """Pieces that every hypothesis begins with; no more than `most`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """Pieces without marks, and the log-probability divided by the length penalty."""

    ids: tuple[int, ...]
    score: float


class Select(Protocol):
    """Tells the model which rows go on, in the order given."""

    def __call__(self, rows: Tensor, /, *, same_sentences: bool) -> None:
        """With `same_sentences` each row follows one of its own sentence, and no sentence has left."""


def beam_search(
    step: Callable[[Tensor], Tensor],
    select: Select,
    starts: Sequence[Start],
    *,
    search: Search,
    marks: Marks,
    device: torch.device,
) -> list[list[Hypothesis]]:
    """Hypotheses of each sentence, best first; none where the model gives no finite probability.

    `step` takes the last id of each row, K rows a sentence, to the logits [R, V] of the next.
    """
    if not starts:
        return []
    beams = _Beams(starts, search=search, marks=marks, device=device)
    ids_R = torch.full((len(starts) * search.beam,), marks.start, device=device)
    while True:
        rows_R, next_R = beams.advance(step(ids_R))
        if not len(beams):
            return beams.hypotheses(len(starts))
        if search.beam > 1 or len(next_R) < len(ids_R):
            select(rows_R, same_sentences=len(next_R) == len(ids_R))
        ids_R = next_R


class _Tree:
    """All ids ever chosen, each with the place of the one before: a hypothesis is the place of its last id."""

    def __init__(self) -> None:
        self._ids: list[Tensor] = []
        self._parents: list[Tensor] = []
        self._size = 0

    def grow(self, ids_BK: Tensor, parents_BK: Tensor) -> Tensor:
        """Places of the new ids."""
        places = torch.arange(self._size, self._size + ids_BK.numel(), device=ids_BK.device)
        self._ids.append(ids_BK.flatten())
        self._parents.append(parents_BK.flatten())
        self._size += ids_BK.numel()
        return places.view_as(ids_BK)

    def reader(self) -> Callable[[int], tuple[int, ...]]:
        """What gives the ids on the way to a place, without that of the place itself, which is an end mark."""
        ids, parents = torch.cat(self._ids).tolist(), torch.cat(self._parents).tolist()

        def path(end: int) -> tuple[int, ...]:
            backwards = []
            place = parents[end]
            while place >= 0:
                backwards.append(ids[place])
                place = parents[place]
            return tuple(reversed(backwards))

        return path


class _Open(NamedTuple):
    """The sentences still searched, one a row."""

    numbers_B: Tensor
    limits_B: Tensor
    ceilings_B: Tensor
    """The most that a log-probability may be divided by."""
    live_BK: Tensor
    """Log-probabilities; that of an empty place is NEVER."""
    places_BK: Tensor
    kept_BN: Tensor
    """Scores of the best hypotheses that have ended."""
    kept_places_BN: Tensor
    prefixes_BF: Tensor
    """Ids that must be said, FREE behind them."""

    def rows(self, chosen: Tensor) -> "_Open":
        """Some of the sentences."""
        return _Open(*(column[chosen] for column in self))


class _Beams:
    """The state of a search; it stays on the device until the search is over."""

    def __init__(
        self, starts: Sequence[Start], *, search: Search, marks: Marks, device: torch.device
    ) -> None:
        self._search, self._marks = search, marks
        self._banned = torch.tensor(marks.banned, dtype=torch.long, device=device)
        self._length = 0
        limits = [start.most for start in starts]
        self._least_limit, self._most_limit = min(limits), max(limits)
        self._close_every = CLOSE_EVERY.get(device.type, 1)
        self._tree = _Tree()
        self._closed: list[_Open] = []
        sentences, ceilings = len(limits), [search.penalty.at(limit + 1) for limit in limits]
        live_BK = torch.full((sentences, search.beam), NEVER, device=device)
        live_BK[:, 0] = 0.0  # but for one the places begin empty: they would all say the same
        self._open = _Open(
            numbers_B=torch.arange(sentences, device=device),
            limits_B=torch.tensor(limits, device=device),
            ceilings_B=torch.tensor(ceilings, device=device),
            live_BK=live_BK,
            places_BK=torch.full((sentences, search.beam), -1, device=device),
            kept_BN=torch.full((sentences, search.best), NEVER, device=device),
            kept_places_BN=torch.full((sentences, search.best), -1, device=device),
            prefixes_BF=_prefixes(starts).to(device),
        )

    def __len__(self) -> int:
        return len(self._open.numbers_B)

    def advance(self, logits_RV: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step; returns the rows that go on and their last ids."""
        scores_BK, parents_BK, ids_BK = self._choose(logits_RV)
        self._length += 1
        places_BK = self._tree.grow(ids_BK, self._open.places_BK.gather(1, parents_BK))
        ended_BK = ids_BK == self._marks.end
        kept_BN, kept_places_BN = self._keep(scores_BK.masked_fill(~ended_BK, NEVER), places_BK)
        self._open = self._open._replace(
            live_BK=scores_BK.masked_fill(ended_BK, NEVER),
            places_BK=places_BK,
            kept_BN=kept_BN,
            kept_places_BN=kept_places_BN,
        )
        beam = self._search.beam
        first_B = torch.arange(0, len(self) * beam, beam, device=ids_BK.device)
        rows_BK = parents_BK + first_B[:, None]
        # A sentence that is done may go on for a while: nothing that it finds can be better than what is kept.
        if self._length % self._close_every == 0 or self._length > self._most_limit:
            stay_B = self._close()
            rows_BK, ids_BK = rows_BK[stay_B], ids_BK[stay_B]
        return rows_BK.flatten(), ids_BK.flatten()

    def hypotheses(self, sentences: int) -> list[list[Hypothesis]]:
        """What was kept of each sentence, best first."""
        numbers = torch.cat([closed.numbers_B for closed in self._closed])
        numbers_H = numbers.repeat_interleave(self._search.best).tolist()
        scores_H = torch.cat([closed.kept_BN.flatten() for closed in self._closed]).tolist()
        places_H = torch.cat([closed.kept_places_BN.flatten() for closed in self._closed]).tolist()
        found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        path = self._tree.reader()
        for number, score, place in zip(numbers_H, scores_H, places_H, strict=True):
            if score > NEVER:
                found[number].append(Hypothesis(ids=path(place), score=score))
        return found

    def _choose(self, logits_RV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, parents' places in the beam, and ids of the best continuations, best first."""
        beam = self._search.beam
        scores_RV = torch.log_softmax(logits_RV, dim=-1, dtype=torch.float32)
        if self._length < self._open.prefixes_BF.shape[1]:
            self._force_prefix(scores_RV)
        else:
            scores_RV.index_fill_(1, self._banned, NEVER)
        if self._length >= self._least_limit:
            self._force_end(scores_RV)
        # Each row's best come first: adding what the row has so far then touches few numbers, not the vocabulary.
        scores_RC, ids_RC = scores_RV.topk(min(beam, scores_RV.shape[1]))
        candidates = ids_RC.shape[1]
        totals_BKC = self._open.live_BK[:, :, None] + scores_RC.view(-1, beam, candidates)
        # A model that has diverged says "not a number": such a hypothesis is dead.
        totals_BJ = totals_BKC.flatten(1).nan_to_num(nan=NEVER, neginf=NEVER)
        # Stable: of equals, the one with the better parent goes first.
        scores_BJ, order_BJ = totals_BJ.sort(dim=1, descending=True, stable=True)
        chosen_BK = order_BJ[:, :beam]
        ids_BK = ids_RC.view(len(self), -1).gather(1, chosen_BK)
        return scores_BJ[:, :beam], chosen_BK // candidates, ids_BK

    def _force_end(self, scores_RV: Tensor) -> None:
        """Leave sentences at their limit nothing but the end mark."""
        full_R = (self._open.limits_B <= self._length).repeat_interleave(self._search.beam)
        ends_R = scores_RV[:, self._marks.end].clone()
        scores_RV.masked_fill_(full_R[:, None], NEVER)
        scores_RV[:, self._marks.end] = ends_R

    def _force_prefix(self, scores_RV: Tensor) -> None:
        """Leave sentences within their prefix nothing but its next id, were it one that is never chosen."""
        forced_R = self._open.prefixes_BF[:, self._length].repeat_interleave(self._search.beam)
        said_R1 = forced_R.clamp(min=0)[:, None]
        odds_R1 = scores_RV.gather(1, said_R1)
        scores_RV.index_fill_(1, self._banned, NEVER)
        within_R1 = (forced_R != FREE)[:, None]
        scores_RV.masked_fill_(within_R1, NEVER)
        scores_RV.scatter_(1, said_R1, torch.where(within_R1, odds_R1, scores_RV.gather(1, said_R1)))

    def _keep(self, ended_BK: Tensor, places_BK: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and places of the best of those that just ended and those kept before; of equals the shorter."""
        ended_BK = ended_BK / self._search.penalty.at(self._length)
        scores, order = torch.cat([self._open.kept_BN, ended_BK], dim=1).sort(
            dim=1, descending=True, stable=True
        )
        places = torch.cat([self._open.kept_places_BN, places_BK], dim=1)
        best = self._search.best
        return scores[:, :best], places.gather(1, order[:, :best])

    def _close(self) -> Tensor:
        """Close the sentences whose live hypotheses could not win, were all that follows certain; returns the rest."""
        hopes_B = self._open.live_BK.amax(1) / self._open.ceilings_B
        done_B = self._open.kept_BN[:, -1] >= hopes_B
        order_B = done_B.to(torch.uint8).sort(stable=True).indices
        going = len(self) - int(done_B.sum())  # the one number of a step that the host waits for
        if going < len(self):
            self._closed.append(self._open.rows(order_B[going:]))
            self._open = self._open.rows(order_B[:going])
        return order_B[:going]


def _prefixes(starts: Sequence[Start]) -> Tensor:
    longest = max(len(start.prefix) for start in starts)
    rows = [[*start.prefix, *[FREE] * (longest - len(start.prefix))] for start in starts]
    return torch.tensor(rows, dtype=torch.long).view(len(starts), longest)
