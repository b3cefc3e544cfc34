"""Attention over packed rows, forward and backward: each token looks at its own sentence pair and at no other."""

# Shapes: N and C query and key places, H heads, K width of a head.

from math import e, log2

import torch
from torch import Tensor

from tandem.kernels.attention_kernels import backward_kernel, forward_kernel
from tandem.kernels.random import threshold_of
from tandem.kernels.side import TILE, Side

__all__ = ["Side", "attention_backward", "attention_forward"]

_REGISTERS = {32: 128, 64: 128}
"""The most that a thread may have, by head width: with fewer of them, more programs wait for memory side by side."""


def attention_forward(
    query_NHK: Tensor,
    key_CHK: Tensor,
    value_CHK: Tensor,
    *,
    queries: Side,
    keys: Side,
    causal: bool,
    share: float,
    seed: Tensor | None,
    site: int,
) -> tuple[Tensor, Tensor]:
    """What each query found, [N, H, K], and what backward needs: [H, N] fp32, log2 of the sum under its softmax.

    Within one side, give the same tiles twice; `causal` is for that. A query without a key finds 0. Heads must lie
    side by side. A `share` of the chances is dropped, as the two numbers of `seed` and the site say.
    """
    places, heads, width = query_NHK.shape
    out_NHK = torch.empty_like(query_NHK, memory_format=torch.contiguous_format)
    log_sums_HN = query_NHK.new_empty((heads, places), dtype=torch.float32)
    forward_kernel[(heads, _walkers(places))](
        query_NHK, key_CHK, value_CHK, out_NHK, log_sums_HN,
        queries.tiles, queries.counts, len(queries.tiles), queries.sentences, keys.sentences,
        *_strides(query_NHK, key_CHK, value_CHK, out_NHK), places,
        log2(e) * width**-0.5, 1 / (1 - share), seed, site, threshold_of(share),
        **_compiled(queries, keys, causal=causal, share=share, width=width),
    )  # fmt: skip
    return out_NHK, log_sums_HN


def attention_backward(
    grad_out_NHK: Tensor,
    *,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    log_sums: Tensor,
    queries: Side,
    keys: Side,
    causal: bool,
    share: float,
    seed: Tensor | None,
    site: int,
    grad_query: Tensor,
    grad_key: Tensor,
    grad_value: Tensor,
) -> None:
    """Write all of the three gradients, given what forward was given and gave; shapes are as there."""
    places, heads, width = query.shape
    backward_kernel[(heads, _walkers(len(key)))](
        grad_out_NHK, query, key, value, out, log_sums, grad_query, grad_key, grad_value,
        queries.tiles, queries.counts, len(queries.tiles), queries.sentences,
        keys.tiles, keys.counts, len(keys.tiles), keys.sentences,
        *_strides(grad_out_NHK, query, key, value, out, grad_query, grad_key, grad_value), places,
        width**-0.5, log2(e) * width**-0.5, 1 / (1 - share), seed, site, threshold_of(share),
        **_compiled(queries, keys, causal=causal, share=share, width=width),
    )  # fmt: skip


def _walkers(places: int) -> int:
    """Programs a head: a quarter more than full tiles, as some are not; a program may walk several."""
    return -(-places * 5 // (TILE * 4))


def _strides(*tensors: Tensor) -> list[int]:
    for tensor in tensors:
        if tensor.stride()[1:] != (tensor.shape[2], 1):
            raise ValueError(f"heads must lie side by side, but strides are {tensor.stride()}")
    return [tensor.stride(0) for tensor in tensors]


def _compiled(queries: Side, keys: Side, *, causal: bool, share: float, width: int) -> dict[str, object]:
    return {
        "WITHIN": queries.tiles.data_ptr() == keys.tiles.data_ptr(),
        "CAUSAL": causal,
        "HAS_DROPOUT": share > 0,
        "K": width,
        "TILE": TILE,
        "num_warps": 4,
        "num_stages": 1,
        "maxnreg": _REGISTERS.get(width),
    }
