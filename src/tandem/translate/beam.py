"""Beam search over many sentences at once.

A hypothesis is a row of pieces and the end mark. At each step the best continuations of all that the beam held are
looked at: those that end are kept apart, by their score, and the next best take their places. A sentence is done when
no live hypothesis can come to a better score than those kept. A beam of 1 is greedy: its first end mark is its last.
"""

# Shapes: B sentences still searched, K places of the beam, R = B * K rows, V vocabulary, H hypotheses of all.

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from tandem.translate.beams import NEVER, Beams, Rules, Search, Start, penalties, pick, start_beams
from tandem.translate.marks import Marks

__all__ = ["Hypothesis", "Search", "Select", "Start", "beam_search", "read_hypotheses"]

CLOSE_EVERY = {"cuda": 8}
"""Steps from one look at which sentences are done to the next: each makes a GPU wait for the host."""


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
    most = max(start.most for start in starts)
    rules = Rules(
        search=search,
        end=marks.end,
        penalties_T=penalties(search.penalty, most + 1).to(device),
        pick=partial(pick, banned=torch.tensor(marks.banned, dtype=torch.long, device=device)),
    )
    beams, closed = start_beams(starts, rules), list[Beams]()
    length_1 = torch.zeros(1, dtype=torch.long, device=device)
    ids_R = torch.full((len(starts) * search.beam,), marks.start, device=device)
    every = CLOSE_EVERY.get(device.type, 1)
    for place in range(most + 1):
        beams, rows_R, ids_R = beams.grown(step(ids_R), length_1, rules)
        length_1 += 1
        going = sentences = len(beams.numbers_B)
        # A sentence that is done may go on for a while: nothing that it finds can be better than what is kept.
        if (place + 1) % every == 0 or place == most:
            done_B = beams.are_done()
            going -= int(done_B.sum())  # the one number of a step that the host waits for
        if going < sentences:
            order_B = done_B.to(torch.uint8).sort(stable=True).indices
            closed.append(beams.rows(order_B[going:]))
            beams = beams.rows(order_B[:going])
            rows_R, ids_R = (
                each.view(sentences, -1).index_select(0, order_B[:going]).flatten()
                for each in (rows_R, ids_R)
            )
        if not going:
            break
        if search.beam > 1 or going < sentences:
            select(rows_R, same_sentences=going == sentences)
    return read_hypotheses(closed, sentences=len(starts))


def read_hypotheses(closed: Sequence[Beams], *, sentences: int) -> list[list[Hypothesis]]:
    """What was kept of each sentence, best first; what has no number of a sentence is passed over."""
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    for beams in closed:
        longest = int(beams.kept_lengths_BN.max())
        said_BNT = beams.kept_said_BNT[:, :, :longest]
        columns = (beams.numbers_B, beams.kept_BN, beams.kept_lengths_BN, said_BNT)
        for number, *kept in zip(*(column.tolist() for column in columns), strict=True):
            if number < sentences:
                found[number] = [
                    Hypothesis(ids=tuple(said[:length]), score=score)
                    for score, length, said in zip(*kept, strict=True)
                    if score > NEVER
                ]
    return found
