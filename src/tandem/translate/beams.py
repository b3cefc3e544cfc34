"""The state of a beam search over many sentences at once, and how a step changes it.

All of it is tensors whose shapes stay as they are from step to step, on the device: nothing waits for the host.
"""

# Shapes: B sentences still searched, K places of the beam, R = B * K rows, V vocabulary, C candidates of a row, J of a
# sentence, N hypotheses asked for of each sentence, T places of the longest hypothesis and its end mark.

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tandem.translate.penalty import LengthPenalty

__all__ = [
    "FREE",
    "NEVER",
    "Beams",
    "Grown",
    "Pick",
    "Rules",
    "Search",
    "Start",
    "penalties",
    "pick",
    "start_beams",
]

NEVER = float("-inf")
FREE = -1
"""Stands where nothing is forced."""


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


class Pick(Protocol):
    """Finds the best continuations of each row."""

    def __call__(self, logits_RV: Tensor, forced_R: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities (fp32) and ids [R, C], best first.

        A row that is forced has its id first, and NEVER behind it; the others have nothing that is never chosen.
        """
        ...


def pick(logits_RV: Tensor, forced_R: Tensor, *, count: int, banned: Tensor) -> tuple[Tensor, Tensor]:
    """Pick with PyTorch's own operations, on any device; `banned` has ids."""
    odds_RV = torch.log_softmax(logits_RV, dim=-1, dtype=torch.float32)
    said_R1 = forced_R.clamp(min=0)[:, None]
    forced_R1 = (forced_R != FREE)[:, None]
    odds_R1 = odds_RV.gather(1, said_R1)
    scores_RC, ids_RC = odds_RV.index_fill_(1, banned, NEVER).topk(min(count, odds_RV.shape[1]))
    first_R1 = torch.where(forced_R1, odds_R1, scores_RC[:, :1])
    others_RC = scores_RC[:, 1:].masked_fill(forced_R1, NEVER)
    ids_R1 = torch.where(forced_R1, said_R1, ids_RC[:, :1])
    return torch.cat((first_R1, others_RC), 1), torch.cat((ids_R1, ids_RC[:, 1:]), 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """What a search keeps to from its first step to its last."""

    search: Search
    end: int
    penalties_T: Tensor
    """What a log-probability is divided by: first that of an end mark alone."""
    pick: Pick


class Beams(NamedTuple):
    """The sentences still searched, one a row."""

    numbers_B: Tensor
    ceilings_B: Tensor
    """The most that a log-probability may be divided by."""
    forced_BT: Tensor
    """Ids that must be said: those of a prefix, and end marks where no more has room; FREE elsewhere."""
    live_BK: Tensor
    """Log-probabilities; that of an empty place is NEVER."""
    said_BKT: Tensor
    """Ids of the live hypotheses."""
    kept_BN: Tensor
    """Scores of the best hypotheses that have ended."""
    kept_said_BNT: Tensor
    """Their ids, and the end mark."""
    kept_lengths_BN: Tensor
    """How many ids each has, without the end mark."""

    def rows(self, chosen: Tensor) -> "Beams":
        """Some of the sentences."""
        return Beams(*(column.index_select(0, chosen) for column in self))

    def are_done(self) -> Tensor:
        """[B] whether no live hypothesis could win, were all that follows certain."""
        return self.kept_BN[:, -1] >= self.live_BK.amax(1) / self.ceilings_B

    def grown(self, logits_RV: Tensor, length_1: Tensor, rules: Rules) -> "Grown":
        """One step on: `length_1` says how many ids each live hypothesis has."""
        beam = rules.search.beam
        scores_BJ, parents_BJ, ids_BJ = self._choose(logits_RV, length_1, rules)
        ended_BJ = ids_BJ == rules.end
        # Those that end leave their places to the next best: no step is made with fewer.
        places_BK = ended_BJ.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam]
        parents_BK, ids_BK = (each.gather(1, places_BK) for each in (parents_BJ, ids_BJ))
        said_BKT = _picked(self.said_BKT, parents_BK).index_copy_(
            2, length_1, ids_BK[:, :, None].to(torch.int32)
        )
        first_B1 = torch.arange(0, parents_BK.numel(), beam, device=ids_BK.device)[:, None]
        ended_BK = scores_BJ[:, :beam].masked_fill(~ended_BJ[:, :beam], NEVER)
        ended_BK = ended_BK / rules.penalties_T.index_select(0, length_1)
        return Grown(
            beams=self._replace(
                # Where there are too few, one that ended has a place, as an empty one.
                live_BK=scores_BJ.masked_fill(ended_BJ, NEVER).gather(1, places_BK),
                said_BKT=said_BKT,
                **self._kept(ended_BK, parents_BJ[:, :beam], length_1),
            ),
            rows_R=(parents_BK + first_B1).flatten(),
            ids_R=ids_BK.flatten(),
        )

    def _choose(self, logits_RV: Tensor, length_1: Tensor, rules: Rules) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, parents' places in the beam, and ids of the best continuations, best first.

        They are enough to fill the beam without those that end; but greedy search ends with its first end mark.
        """
        beam = rules.search.beam
        forced_R = self.forced_BT.index_select(1, length_1).expand(-1, beam).flatten()
        # Each row's best come first: adding what the row has so far then touches few numbers, not the vocabulary.
        # One of them may be the end mark.
        scores_RC, ids_RC = rules.pick(logits_RV, forced_R, count=beam + 1 if beam > 1 else 1)
        candidates = ids_RC.shape[1]
        totals_BKC = self.live_BK[:, :, None] + scores_RC.view(-1, beam, candidates)
        # A model that has diverged says "not a number": such a hypothesis is dead.
        totals_BJ = totals_BKC.flatten(1).nan_to_num(nan=NEVER, neginf=NEVER)
        # Stable: of equals, the one with the better parent goes first.
        scores_BJ, order_BJ = totals_BJ.sort(dim=1, descending=True, stable=True)
        chosen_BJ = order_BJ[:, : 2 * beam]
        ids_BJ = ids_RC.view(len(self.live_BK), -1).gather(1, chosen_BJ)
        return scores_BJ[:, : 2 * beam], chosen_BJ // candidates, ids_BJ

    def _kept(self, ended_BK: Tensor, parents_BK: Tensor, length_1: Tensor) -> dict[str, Tensor]:
        """The best of those that just ended and those kept before; of equals the shorter."""
        best = self.kept_BN.shape[1]
        scores, order = torch.cat([self.kept_BN, ended_BK], dim=1).sort(dim=1, descending=True, stable=True)
        order_BN = order[:, :best]
        before_BN = torch.arange(best, device=order.device).expand_as(self.kept_BN)
        said_BN = torch.cat([before_BN, best + parents_BK], dim=1).gather(1, order_BN)
        lengths = torch.cat([self.kept_lengths_BN, length_1.expand_as(ended_BK)], dim=1)
        return {
            "kept_BN": scores[:, :best],
            # What follows the ids that were said are end marks from the start.
            "kept_said_BNT": _picked(torch.cat([self.kept_said_BNT, self.said_BKT], dim=1), said_BN),
            "kept_lengths_BN": lengths.gather(1, order_BN),
        }


class Grown(NamedTuple):
    """What comes of a step."""

    beams: Beams
    rows_R: Tensor
    """The row that each one follows."""
    ids_R: Tensor
    """The ids that were chosen."""


def penalties(penalty: LengthPenalty, lengths: int) -> Tensor:
    """[T] what hypotheses of lengths from 1 to so many are divided by."""
    return torch.tensor([penalty.at(length) for length in range(1, lengths + 1)])


def start_beams(starts: Sequence[Start], rules: Rules) -> Beams:
    """All sentences, with nothing said; no hypothesis may be longer than the rules have penalties for."""
    search, device = rules.search, rules.penalties_T.device
    sentences, places = len(starts), len(rules.penalties_T)
    live_BK = torch.full((sentences, search.beam), NEVER, device=device)
    live_BK[:, 0] = 0.0  # but for one the places begin empty: they would all say the same
    said_BKT = torch.full((sentences, search.beam, places), rules.end, dtype=torch.int32, device=device)
    return Beams(
        numbers_B=torch.arange(sentences, device=device),
        ceilings_B=torch.tensor([search.penalty.at(start.most + 1) for start in starts], device=device),
        forced_BT=_forced(starts, end=rules.end, places=places).to(device),
        live_BK=live_BK,
        said_BKT=said_BKT,
        kept_BN=torch.full((sentences, search.best), NEVER, device=device),
        kept_said_BNT=said_BKT[:, : search.best].clone(),
        kept_lengths_BN=torch.zeros((sentences, search.best), dtype=torch.long, device=device),
    )


def _forced(starts: Sequence[Start], *, end: int, places: int) -> Tensor:
    limits_B1 = torch.tensor([start.most for start in starts])[:, None]
    forced_BT = torch.where(torch.arange(places) < limits_B1, FREE, end)
    for number, start in enumerate(starts):
        if start.prefix:
            forced_BT[number, : len(start.prefix)] = torch.tensor(start.prefix)
    return forced_BT


def _picked(said_BKT: Tensor, chosen_BN: Tensor) -> Tensor:
    return said_BKT.gather(1, chosen_BN[:, :, None].expand(-1, -1, said_BKT.shape[2]))
