"""Attention over packed rows, forward and backward: each token looks at its own sentence pair and at no other."""

# Shapes: N and C query and key places, H heads, K width of a head.

from dataclasses import dataclass
from functools import cache
from math import e, gcd, log2

import torch
from torch import Tensor

from tandem.kernels.attention_kernels import (
    backward_kernel,
    forward_kernel,
    long_backward_kernel,
    long_forward_kernel,
)
from tandem.kernels.random import threshold_of
from tandem.kernels.side import TILE, Side

__all__ = ["Side", "attention_backward", "attention_forward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """How a kernel is run: what it does at once, and with how much of the GPU."""

    heads: int = 1
    """The most that a program walks one after the other, so that it looks for its tile and its mask once."""
    stages: int = 1
    warps: int
    registers: int | None
    """The most that a thread may have: with fewer of them, more programs wait for memory side by side."""


_FORWARD = _Launch(heads=2, stages=2, warps=4, registers=128)
_BACKWARD = _Launch(heads=4, stages=3, warps=4, registers=255)
_LONG_FORWARD = _Launch(warps=4, registers=255)
_LONG_BACKWARD = _Launch(warps=8, registers=255)

_ROOM_BYTES = 160 * 2**10
"""Shared memory that these may take in all; where there is less, as on GPUs for desks, programs hold less at once."""


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
    given = (
        query_NHK, key_CHK, value_CHK, out_NHK, log_sums_HN,
        queries.tiles, queries.counts, len(queries.tiles), queries.sentences, keys.sentences,
        *_strides(query_NHK, key_CHK, value_CHK, out_NHK), places,
        log2(e) * width**-0.5, 1 / (1 - share), seed, site, threshold_of(share),
    )  # fmt: skip
    compiled = _compiled(queries, keys, causal=causal, share=share, width=width)
    long_forward_kernel[(heads, _long_walkers(places))](
        *given, **compiled, **_long(_LONG_FORWARD, width=width, device=query_NHK.device)
    )
    together = gcd(heads, _FORWARD.heads)
    forward_kernel[(heads // together, _walkers(places))](
        *given, **compiled, **_whole(_FORWARD, heads=together, width=width, device=query_NHK.device)
    )
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
    numbers = width**-0.5, log2(e) * width**-0.5, 1 / (1 - share), seed, site, threshold_of(share)
    compiled = _compiled(queries, keys, causal=causal, share=share, width=width)
    long_backward_kernel[(heads, _long_walkers(len(key)))](
        grad_out_NHK, query, key, value, out, log_sums, grad_query, grad_key, grad_value,
        queries.tiles, queries.counts, len(queries.tiles), queries.sentences,
        keys.tiles, keys.counts, len(keys.tiles), keys.sentences,
        *_strides(grad_out_NHK, query, key, value, out, grad_query, grad_key, grad_value), places,
        *numbers, **compiled, **_long(_LONG_BACKWARD, width=width, device=query.device),
    )  # fmt: skip
    together = gcd(heads, _BACKWARD.heads)
    backward_kernel[(heads // together, _walkers(len(key)))](
        grad_out_NHK, query, key, value, log_sums, grad_query, grad_key, grad_value,
        keys.tiles, keys.counts, len(keys.tiles), queries.sentences, keys.sentences,
        *_strides(grad_out_NHK, query, key, value, grad_query, grad_key, grad_value), places,
        *numbers, **compiled, **_whole(_BACKWARD, heads=together, width=width, device=query.device),
    )  # fmt: skip


def _walkers(places: int) -> int:
    """Programs a head: a quarter more than full tiles, as some are not; a program may walk several."""
    return -(-places * 5 // (TILE * 4))


def _long_walkers(places: int) -> int:
    """Few enough to be gone at once where there is nothing to do."""
    return -(-places // (TILE * 4))


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
    }


def _whole(launch: _Launch, *, heads: int, width: int, device: torch.device) -> dict[str, object]:
    stages = launch.stages if width <= 128 and _is_roomy(device) else 1
    return {"HEADS": heads, "STAGES": stages, **_limits(launch, width=width)}


def _long(launch: _Launch, *, width: int, device: torch.device) -> dict[str, object]:
    # Wider heads leave no room for wider tiles.
    return {
        "WIDE": 2 * TILE if width <= 64 and _is_roomy(device) else TILE,
        **_limits(launch, width=width),
    }


@cache
def _is_roomy(device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    # PyTorch's type stubs do not have it, and neither have GPUs of other makers.
    properties = torch.cuda.get_device_properties(device)
    return bool(getattr(properties, "shared_memory_per_block_optin", 0) >= _ROOM_BYTES)


def _limits(launch: _Launch, *, width: int) -> dict[str, object]:
    return {
        "num_warps": launch.warps,
        "num_stages": 1,
        "maxnreg": launch.registers if width <= 64 else None,
    }
