"""Decoding over a pool says what the whole forward pass says, whichever rows follow which."""

from typing import Any

import pytest
import torch
from tests.unit.model.sentences import VARIANTS, padded, sentences, small_model
from torch import Tensor

from tandem.model import PaddedTokens, Transformer
from tandem.model.pooled_cache import PooledCache

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BEAM = 2


def on_device(tokens: PaddedTokens) -> PaddedTokens:
    return PaddedTokens(ids=tokens.ids.to(DEVICE), lengths=tokens.lengths.to(DEVICE))


def start(model: Transformer, source: list[Tensor], *, steps: int = 6) -> PooledCache:
    rows = len(source) * BEAM
    cache = PooledCache(
        model,
        sentences=len(source) + 1,  # more room than is used
        beam=BEAM,
        steps=steps + 2,
        places=rows * steps,
        source_places=len(source) * max(map(len, source)),
    )
    cache.start(model.encode(on_device(padded(source))))
    return cache


class Followed:
    """Hypotheses whose states are asked for twice: step by step in the pool, and in one pass over each."""

    def __init__(self, model: Transformer, source: list[Tensor], cache: PooledCache) -> None:
        self.model, self.source, self.cache = model, source, cache
        self.owners = [owner for owner in range(len(source)) for _ in range(BEAM)]
        self.said = [torch.empty(0, dtype=torch.long) for _ in self.owners]

    def step(self) -> None:
        """Every row says something of its own; its state must be that of the forward pass."""
        words = sentences([1] * len(self.said), seed=len(self.said) + len(self.said[0]))
        self.said = [torch.cat((said, word)) for said, word in zip(self.said, words, strict=True)]
        rows = self.cache.rows(len(self.said) // BEAM)
        states = self.model.step(torch.cat(words).to(DEVICE), rows)
        expected = [
            self.model(on_device(padded([self.source[owner]])), on_device(padded([said])))[0, -1]
            for owner, said in zip(self.owners, self.said, strict=True)
        ]
        torch.testing.assert_close(states, torch.stack(expected), rtol=1e-4, atol=1e-5)

    def follow(self, picked: list[int]) -> None:
        self.cache.rows(len(self.said) // BEAM).follow(torch.tensor(picked, device=DEVICE))
        self.said = [self.said[row] for row in picked]

    def keep(self, kept: list[int]) -> None:
        self.cache.keep(torch.tensor(kept, device=DEVICE))
        rows = [sentence * BEAM + place for sentence in kept for place in range(BEAM)]
        self.said, self.owners = [self.said[row] for row in rows], [self.owners[row] for row in rows]


@torch.no_grad()
@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_rows_follow_others_and_sentences_leave(settings: dict[str, Any]) -> None:
    model = small_model(**settings).eval().to(DEVICE)
    source = sentences([3, 5, 1])
    followed = Followed(model, source, start(model, source))
    followed.step()
    followed.follow([1, 1, 2, 3, 5, 4])
    followed.step()
    followed.follow([0, 0, 3, 2, 4, 5])
    followed.keep([2, 0])
    followed.step()
    followed.follow([1, 0, 3, 3])
    followed.keep([1])
    followed.step()


@torch.no_grad()
def test_what_was_there_before_is_forgotten_with_a_start() -> None:
    model = small_model().eval().to(DEVICE)
    source = sentences([4, 4])
    cache = start(model, source)
    Followed(model, source, cache).step()
    others = sentences([2, 3], seed=9)
    cache.start(model.encode(on_device(padded(others))))
    followed = Followed(model, others, cache)
    followed.step()
    followed.step()
