"""What a model thinks of translations that are given: how likely each piece is, and where it looked in the source."""

# Shapes: P sentences, T target places, S source places, H heads, K width of a head, V vocabulary.

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tandem.model import PaddedTokens, Transformer
from tandem.model.attend import Attend, padding_mask
from tandem.translate.marks import Marks

__all__ = ["Testimony", "pad_rows", "question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """What the model says of one translation."""

    token_scores: tuple[float, ...]
    """Log-probabilities of the pieces and of the end mark."""
    alignment: tuple[int, ...]
    """For each piece the place of the source piece that was looked at most."""


def pad_rows(rows: Sequence[Sequence[int]], *, pad: int, device: torch.device) -> PaddedTokens:
    """A rectangle of rows of unequal length."""
    longest = max(map(len, rows))
    filled = [[*row, *[pad] * (longest - len(row))] for row in rows]
    return PaddedTokens(
        ids=torch.tensor(filled, dtype=torch.long).to(device),
        lengths=torch.tensor([len(row) for row in rows]).to(device),
    )


def question(
    model: Transformer,
    pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    *,
    marks: Marks,
) -> list[Testimony]:
    """Ask about pairs of source and translation, both without marks, in one pass over all places at once."""
    pad, device = model.pad, model.output_weight.device
    source = pad_rows([(*source, marks.end) for source, _ in pairs], pad=pad, device=device)
    target = pad_rows([(marks.start, *target) for _, target in pairs], pad=pad, device=device)
    said = pad_rows([(*target, marks.end) for _, target in pairs], pad=pad, device=device)
    with _watched(model, source) as looks:
        logits_PTV = model.logits(model(source, target))
    odds_PTV = torch.log_softmax(logits_PTV, dim=-1, dtype=torch.float32)
    odds_PT = odds_PTV.gather(2, said.ids[..., None])[..., 0].tolist()
    weights_PTS = torch.stack(looks).mean(0)
    # The end mark of the source draws attention that belongs to no piece.
    ends_P11 = (source.lengths - 1)[:, None, None]
    weights_PTS.scatter_(2, ends_P11.expand(-1, weights_PTS.shape[1], 1), -1.0)
    looked_PT = weights_PTS.argmax(2).tolist()
    return [
        Testimony(token_scores=tuple(odds[: len(target) + 1]), alignment=tuple(looked[: len(target)]))
        for (_, target), odds, looked in zip(pairs, odds_PT, looked_PT, strict=True)
    ]


@contextmanager
def _watched(model: Transformer, source: PaddedTokens) -> Iterator[list[Tensor]]:
    """Inside the block the list gets each layer's attention [P, T, S] over the source, the mean of its heads."""
    mask = padding_mask(source.ids, source.lengths)
    looks: list[Tensor] = []

    def watch(
        _: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        attend: Attend = named["attend"]

        def watching(query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
            looks.append(_mean_attention(query, key, mask))
            return attend(query, key, value, dropout=dropout)

        return given, {**named, "attend": watching}

    hooks = [
        layer.cross_attention.register_forward_pre_hook(watch, with_kwargs=True) for layer in model.decoder
    ]
    try:
        yield looks
    finally:
        for hook in hooks:
            hook.remove()


def _mean_attention(query_PTHK: Tensor, key_PSHK: Tensor, mask_P11S: Tensor | None) -> Tensor:
    scores_PHTS = torch.einsum("pthk,pshk->phts", query_PTHK.float(), key_PSHK.float())
    scores_PHTS /= math.sqrt(query_PTHK.shape[-1])
    if mask_P11S is not None:
        scores_PHTS.masked_fill_(~mask_P11S, float("-inf"))
    return scores_PHTS.softmax(-1).mean(1)
