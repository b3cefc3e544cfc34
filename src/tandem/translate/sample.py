"""Translations drawn at random: each piece by its probability."""

# Shapes: B sentences, K draws of each, R = B * K rows, V vocabulary, C pieces to draw from, T places, F places of the
# longest prefix.

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tandem.translate.beam import Hypothesis
from tandem.translate.engine import Sentence
from tandem.translate.marks import Marks
from tandem.translate.wish import Sampling

__all__ = ["draw_samples"]

LOOK_EVERY = {"cuda": 8}
"""Steps from one look at whether all have ended to the next: each makes a GPU wait for the host."""

LEAST_TEMPERATURE = torch.finfo(torch.float32).tiny
"""Below, a device's 1 / temperature is infinite."""


def draw_samples(
    step: Callable[[Tensor], Tensor],
    sentences: Sequence[Sentence],
    *,
    sampling: Sampling,
    draws: int,
    marks: Marks,
    device: torch.device,
) -> list[list[Hypothesis]]:
    """So many translations of each sentence, likeliest first; none of one whose model gives no finite probability.

    `step` takes the last id of each row, `draws` rows a sentence, to the logits [R, V] of the next.
    """
    if not sentences:
        return []
    rows = _Rows(sentences, sampling=sampling, draws=draws, marks=marks, device=device)
    every = LOOK_EVERY.get(device.type, 1)
    for place in range(rows.places):
        rows.draw(step(rows.last_R), place)
        if (place + 1) % every == 0 and rows.have_all_ended():
            break
    found = rows.read()
    return [
        sorted(found[start : start + draws], key=lambda each: -each.score)
        if np.isfinite([each.score for each in found[start : start + draws]]).all()
        else []
        for start in range(0, len(found), draws)
    ]


def _chances(
    sentence: Sentence, draw: int, *, seed: int, places: int
) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Numbers from 0 to 1 that depend on the sentence alone, so that what stands beside it changes nothing."""
    told = repr((seed, draw, sentence.number, sentence.source, sentence.prefix)).encode()
    key = int.from_bytes(hashlib.blake2b(told, digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=key)).random(places, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What was drawn at one place; on the device."""

    ids_R: Tensor
    odds_R: Tensor


class _Rows:
    """All draws of all sentences; those that have ended go on unheard until the last has."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        *,
        sampling: Sampling,
        draws: int,
        marks: Marks,
        device: torch.device,
    ) -> None:
        self._sampling, self._marks = sampling, marks
        self.places = max(sentence.most for sentence in sentences) + 1
        each = [sentence for sentence in sentences for _ in range(draws)]
        chances = [
            _chances(sentence, number % draws, seed=sampling.seed, places=self.places)
            for number, sentence in enumerate(each)
        ]
        self._chances_RT = torch.from_numpy(np.stack(chances)).to(device)
        self._limits_R = torch.tensor([sentence.most for sentence in each], device=device)
        self._prefixes = [sentence.prefix for sentence in each]
        self._longest = max(len(prefix) for prefix in self._prefixes)
        self._banned = torch.tensor(marks.banned, dtype=torch.long, device=device)
        self._ended_R = torch.zeros(len(each), dtype=torch.bool, device=device)
        self.last_R = torch.full((len(each),), marks.start, device=device)
        self._said: list[_Said] = []

    def draw(self, logits_RV: Tensor, place: int) -> None:
        """Draw the next piece of every row."""
        odds_RV = torch.log_softmax(logits_RV, dim=-1, dtype=torch.float32)
        allowed_RV = odds_RV.index_fill(1, self._banned, float("-inf"))
        ids_R = self._choose(allowed_RV, self._chances_RT[:, place])
        ids_R = torch.where(self._limits_R <= place, self._marks.end, ids_R)
        if place < self._longest:
            ids_R = self._forced(ids_R, place)
        self._said.append(_Said(ids_R=ids_R, odds_R=odds_RV.gather(1, ids_R[:, None])[:, 0]))
        self._ended_R |= ids_R == self._marks.end
        self.last_R = ids_R

    def have_all_ended(self) -> bool:
        """Whether nothing is left to draw; the host waits for the answer."""
        return bool(self._ended_R.all())

    def read(self) -> list[Hypothesis]:
        """What each row says up to its first end mark, with its log-probability."""
        ids = torch.stack([said.ids_R for said in self._said], dim=1).tolist()
        odds = torch.stack([said.odds_R for said in self._said], dim=1).double().tolist()
        return [self._hypothesis(*row) for row in zip(ids, odds, self._prefixes, strict=True)]

    def _hypothesis(self, ids: list[int], odds: list[float], prefix: tuple[int, ...]) -> Hypothesis:
        end = ids.index(self._marks.end, len(prefix))
        return Hypothesis(ids=tuple(ids[:end]), score=sum(odds[: end + 1]))

    def _choose(self, odds_RV: Tensor, chances_R: Tensor) -> Tensor:
        """The piece at which the summed probabilities pass each row's number."""
        top = min(self._sampling.top or odds_RV.shape[1], odds_RV.shape[1])
        kept_RC, ids_RC = odds_RV.sort(dim=1, descending=True, stable=True)
        kept_RC, ids_RC = kept_RC[:, :top], ids_RC[:, :top]
        # The likeliest has 0, which no temperature, however small, makes infinite.
        temperature = max(self._sampling.temperature, LEAST_TEMPERATURE)
        heated_RC = (kept_RC - kept_RC[:, :1]) / temperature
        sums_RC = torch.softmax(heated_RC, dim=1).nan_to_num(nan=0.0).cumsum(1)
        passed_R1 = torch.searchsorted(sums_RC, (chances_R * sums_RC[:, -1])[:, None], right=True)
        return ids_RC.gather(1, passed_R1.clamp(max=top - 1))[:, 0]

    def _forced(self, ids_R: Tensor, place: int) -> Tensor:
        wanted = [prefix[place] if place < len(prefix) else -1 for prefix in self._prefixes]
        wanted_R = torch.tensor(wanted, device=ids_R.device)
        return torch.where(wanted_R >= 0, wanted_R, ids_R)
