"""What the kernel for packed rows is told, checked against a slow kernel that does exactly that."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from tests.unit.model.sentences import packed, sentences
from torch import Tensor
from torch.nn import functional

from tandem.model import PackedTokens, attend


def slow_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_bounds: Tensor,
    key_bounds: Tensor,
    *most: int,
    **window: Any,
) -> Tensor:
    assert len(query_bounds) == len(key_bounds)
    attended = torch.full_like(query, torch.nan)
    for queries, keys in zip(pairwise(query_bounds.tolist()), pairwise(key_bounds.tolist()), strict=True):
        assert queries[1] - queries[0] <= most[0]
        assert keys[1] - keys[0] <= most[1]
        attended[slice(*queries)] = functional.scaled_dot_product_attention(
            query[slice(*queries)].transpose(0, 1),
            key[slice(*keys)].transpose(0, 1),
            value[slice(*keys)].transpose(0, 1),
            is_causal=window["window_size"] == (-1, 0),
        ).transpose(0, 1)
    return attended


def row(lengths: list[int], *, capacity: int, longest: int | None) -> PackedTokens:
    tokens = packed(sentences(lengths), capacity=capacity, most=5)
    return PackedTokens(ids=tokens.ids, positions=tokens.positions, bounds=tokens.bounds, longest=longest)


@pytest.mark.parametrize("longest", [None, 6, 9])
@pytest.mark.parametrize("key_capacity", [11, 12, 40])
@pytest.mark.parametrize("within", [True, False])
def test_the_kernel_writes_every_place_and_sentences_as_the_mask_does(
    monkeypatch: pytest.MonkeyPatch, longest: int | None, key_capacity: int, *, within: bool
) -> None:
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", slow_kernel)
    queries = row([4, 1, 6], capacity=30, longest=longest)
    keys = queries if within else row([2, 6, 3], capacity=key_capacity, longest=longest)
    layout = attend._AttendPacked(queries, keys, causal=within)
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(len(queries.ids), 2, 8, generator=generator)
    key, value = torch.randn(2, len(keys.ids), 2, 8, generator=generator)
    by_kernel = layout._flash(query, key, value)
    by_mask = layout(query, key, value, dropout=0.0)
    torch.testing.assert_close(by_kernel[:11], by_mask[:11])
    assert by_kernel.isfinite().all()
    assert by_mask.isfinite().all()
