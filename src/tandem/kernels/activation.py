"""What stands between the two matrices of the feed-forward: activation, gate and dropout."""

# Shapes: N rows, F feed-forward width, I width of what goes in (F, or 2F with a gate), K sums of columns, P programs.

from typing import Literal, TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.columns import MOST_COLUMNS, add_partials, row_programs
from tandem.kernels.random import kept, kept_by, keys_of, threshold_of

__all__ = ["Kind", "backward", "forward"]

Kind: TypeAlias = Literal["relu", "gelu", "silu"]

_WARPS = 4
_ROWS = 8
_ROWS_A_WARP = 4


def forward(inner_NI: Tensor, *, kind: Kind, gated: bool, share: float, seed: Tensor, site: int) -> Tensor:
    """[N, F]: the activation of the inner numbers, or of their first half times the second, dropped."""
    rows, width = inner_NI.shape[0], inner_NI.shape[1] // (1 + gated)
    out_NF = inner_NI.new_empty((rows, width))
    block = min(MOST_COLUMNS, triton.next_power_of_2(width))
    _forward[triton.cdiv(rows, _ROWS), triton.cdiv(width, block)](
        inner_NI,
        out_NF,
        seed,
        site,
        threshold_of(share),
        1 / (1 - share),
        rows,
        KIND=kind,
        IS_GATED=gated,
        HAS_DROPOUT=share > 0,
        F=width,
        ROWS=_ROWS,
        COLUMNS=block,
        num_warps=_WARPS,
    )
    return out_NF


def backward(
    grad_out_NF: Tensor,
    inner_NI: Tensor,
    *,
    kind: Kind,
    gated: bool,
    share: float,
    seed: Tensor,
    site: int,
    bias_grad_I: Tensor | None,
) -> Tensor:
    """The gradient of the inner numbers, without a gate in place of what came; its column sums are added (fp32).

    With relu and no gate, the inner numbers may be those after the activation, before dropout or after it.
    """
    rows, width = grad_out_NF.shape
    grad_inner_NI = torch.empty_like(inner_NI) if gated else grad_out_NF
    block = min(MOST_COLUMNS, triton.next_power_of_2(width))
    blocks = triton.cdiv(width, block)
    tiles = triton.cdiv(rows, _WARPS * _ROWS_A_WARP)
    programs = row_programs(tiles, share=blocks, device=inner_NI.device)
    has_bias = bias_grad_I is not None
    partials_KPI = inner_NI.new_empty((1, programs, inner_NI.shape[1]), dtype=torch.float32)
    _backward[programs, blocks](
        grad_out_NF,
        inner_NI,
        grad_inner_NI,
        partials_KPI if has_bias else None,
        seed,
        site,
        threshold_of(share),
        1 / (1 - share),
        rows,
        KIND=kind,
        IS_GATED=gated,
        HAS_DROPOUT=share > 0,
        F=width,
        WARPS=_WARPS,
        ROWS=_ROWS_A_WARP,
        COLUMNS=block,
        num_warps=_WARPS,
    )
    if has_bias:
        add_partials(partials_KPI, [bias_grad_I])
    return grad_inner_NI


@triton.jit
def _activated(x, KIND: tl.constexpr):
    if KIND == "relu":
        active = tl.maximum(x, 0)
    elif KIND == "gelu":
        active = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    else:
        active = x * tl.sigmoid(x)
    return active


@triton.jit
def _before(grad, x, KIND: tl.constexpr):
    """The gradient before the activation, from the one after it."""
    if KIND == "relu":
        grad = tl.where(x > 0, grad, 0)
    elif KIND == "gelu":
        density = tl.exp(-0.5 * x * x) * 0.3989422804014327
        grad *= 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * density
    else:
        chance = tl.sigmoid(x)
        grad *= chance * (1 + x * (1 - chance))
    return grad


@triton.jit(do_not_specialize=["site", "threshold"])
def _forward(
    inner_ptr,
    out_ptr,
    seed_ptr,
    site,
    threshold,
    factor,
    rows,
    KIND: tl.constexpr,
    IS_GATED: tl.constexpr,
    HAS_DROPOUT: tl.constexpr,
    F: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (columns < F)
    places = row * F + columns
    inner = places + row * F if IS_GATED else places
    out = _activated(tl.load(inner_ptr + inner, mask=mask, other=0).to(tl.float32), KIND)
    if IS_GATED:
        out *= tl.load(inner_ptr + F + inner, mask=mask, other=0).to(tl.float32)
    if HAS_DROPOUT:
        out = tl.where(kept(seed_ptr, site, places, threshold), out * factor, 0)
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["site", "threshold"])
def _backward(
    grad_out_ptr,
    inner_ptr,
    grad_inner_ptr,
    partials_ptr,
    seed_ptr,
    site,
    threshold,
    factor,
    rows,
    KIND: tl.constexpr,
    IS_GATED: tl.constexpr,
    HAS_DROPOUT: tl.constexpr,
    F: tl.constexpr,
    WARPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    # Each warp sums rows of its own, all of which it asks for before it adds.
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, None, :]
    own_row = tl.arange(0, WARPS)[:, None, None] * ROWS + tl.arange(0, ROWS)[None, :, None]
    sums = tl.zeros((WARPS, COLUMNS), tl.float32)
    gate_sums = tl.zeros((WARPS, COLUMNS), tl.float32)
    if HAS_DROPOUT:
        first, second = keys_of(seed_ptr, site)
    for tile in range(tl.program_id(0), tl.cdiv(rows, WARPS * ROWS), tl.num_programs(0)):
        row = tile * (WARPS * ROWS) + own_row
        mask = (row < rows) & (columns < F)
        places = row * F + columns
        inner = places + row * F if IS_GATED else places
        grad = tl.load(grad_out_ptr + places, mask=mask, other=0).to(tl.float32)
        x = tl.load(inner_ptr + inner, mask=mask, other=0).to(tl.float32)
        if HAS_DROPOUT:
            grad = tl.where(kept_by(first, second, places, threshold), grad * factor, 0)
        if IS_GATED:
            gate = tl.load(inner_ptr + F + inner, mask=mask, other=0).to(tl.float32)
            grad_gate = grad * _activated(x, KIND)
            tl.store(grad_inner_ptr + F + inner, grad_gate.to(grad_inner_ptr.dtype.element_ty), mask=mask)
            gate_sums += tl.sum(grad_gate, 1)
            grad *= gate
        grad = _before(grad, x, KIND)
        tl.store(grad_inner_ptr + inner, grad.to(grad_inner_ptr.dtype.element_ty), mask=mask)
        sums += tl.sum(grad, 1)
    if partials_ptr is not None:
        own_ptr = partials_ptr + tl.program_id(0) * (2 * F if IS_GATED else F)
        _store_sums(own_ptr, sums, F, COLUMNS)
        if IS_GATED:
            _store_sums(own_ptr + F, gate_sums, F, COLUMNS)


@triton.jit
def _store_sums(own_ptr, sums, F: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(own_ptr + columns, tl.sum(sums, 0), mask=columns < F)
