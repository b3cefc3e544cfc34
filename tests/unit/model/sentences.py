"""Small models in every variant, and random sentences in both layouts."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tandem.config import ModelSection
from tandem.model import PackedTokens, PaddedTokens, Transformer, build_model

VOCABULARY = 40
PAD = 0

VARIANTS: dict[str, dict[str, Any]] = {
    "the first paper's": {"norm_place": "post"},
    "pre-norm": {},
    "modern": {"norm": "rms", "activation": "silu", "gated": True, "positions": "rotary", "tied": "target"},
    "rotary post-norm gelu": {
        "norm_place": "post",
        "norm": "rms",
        "activation": "gelu",
        "positions": "rotary",
        "tied": "none",
    },
}


def small_model(*, seed: int = 1, dropout: float = 0.0, **settings: Any) -> Transformer:
    section = ModelSection(
        **{"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, **settings},
        dropout=dropout,
    )
    return build_model(
        section, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, pad=PAD, seed=seed
    )


def sentences(lengths: Sequence[int], *, seed: int = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, VOCABULARY, (length,), generator=generator) for length in lengths]


def padded(rows: Sequence[Tensor], *, width: int | None = None, fill: int = PAD) -> PaddedTokens:
    lengths = [len(row) for row in rows]
    ids = torch.full((len(rows), width or max(lengths, default=1)), fill, dtype=torch.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return PaddedTokens(ids=ids, lengths=torch.tensor(lengths, dtype=torch.int32))


def packed(rows: Sequence[Tensor], *, capacity: int, most: int) -> PackedTokens:
    ids, positions = torch.full((capacity,), PAD, dtype=torch.int32), torch.zeros(capacity, dtype=torch.int32)
    ends = torch.tensor([0, *(len(row) for row in rows)]).cumsum(0).tolist()
    for start, row in zip(ends, rows, strict=False):
        ids[start : start + len(row)] = row
        positions[start : start + len(row)] = torch.arange(len(row))
    bounds = [*ends, *[ends[-1]] * (most - len(rows))]
    return PackedTokens(ids=ids, positions=positions, bounds=torch.tensor(bounds, dtype=torch.int32))
