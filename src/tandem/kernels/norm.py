"""What stands between two sublayers in one pass: bias, dropout, residual sum and normalisation."""

# Shapes: N rows, D width, K sums of columns, P programs.
# In kernels a tile has the shape [ROWS, CHUNKS, CHUNK]: a warp holds a whole row, so that no warp waits for another.

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.columns import MOST_COLUMNS, add_partials, row_programs
from tandem.kernels.quantize import Quarter, store_quarter
from tandem.kernels.random import kept, kept_by, keys_of, threshold_of

__all__ = ["Kind", "Normed", "backward", "forward"]

Kind: TypeAlias = Literal["layer", "rms"]

_WARPS = 4
_BACKWARD_WARPS = 2
_QUARTER_COLUMNS = 512
"""A thread stores 16 numbers of fp8 at once: with fewer columns two rows would share a warp."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Normed:
    """The residual stream after a sublayer, and what the next one reads."""

    sum: Tensor
    """[N, D]"""
    normed: Tensor
    """[N, D]"""


def forward(
    x_ND: Tensor,
    change_ND: Tensor | None,
    *,
    change_bias_D: Tensor | None,
    weight_D: Tensor,
    bias_D: Tensor | None,
    kind: Kind,
    epsilon: float,
    share: float,
    seed: Tensor,
    site: int,
    dtype: torch.dtype,
    quarter: Quarter | None = None,
) -> Normed:
    """The sum x + dropout(change + its bias) and its norm in `dtype`; without a change, the sum is x.

    The norm also fills a quarter, where there is one.
    """
    rows, width = x_ND.shape
    sum_ND = x_ND if change_ND is None else torch.empty_like(x_ND)
    normed_ND = torch.empty_like(x_ND, dtype=dtype)
    _forward[triton.cdiv(rows, _WARPS),](
        x_ND,
        change_ND,
        change_bias_D,
        weight_D,
        bias_D,
        sum_ND,
        normed_ND,
        None if quarter is None else quarter.values,
        None if quarter is None else quarter.scales,
        seed,
        site,
        threshold_of(share),
        1 / (1 - share),
        rows,
        IS_LAYER=kind == "layer",
        EPSILON=epsilon,
        HAS_DROPOUT=share > 0,
        **_tile(width, _WARPS, MOST_COLUMNS if quarter is None else _QUARTER_COLUMNS),
    )
    return Normed(sum=sum_ND, normed=normed_ND)


def backward(
    grad_normed_ND: Tensor,
    grad_sum_ND: Tensor | None,
    *,
    sum_ND: Tensor,
    weight_D: Tensor,
    kind: Kind,
    epsilon: float,
    share: float,
    seed: Tensor,
    site: int,
    has_change: bool,
    weight_grad_D: Tensor,
    bias_grad_D: Tensor | None,
    change_bias_grad_D: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Gradients of x and of the change, which may be one tensor; those of the vectors (fp32) are added to."""
    rows, width = sum_ND.shape
    grad_x_ND = torch.empty_like(sum_ND)
    is_same = not share and grad_x_ND.dtype == grad_normed_ND.dtype
    grad_change_ND = torch.empty_like(grad_normed_ND) if has_change and not is_same else None
    tiles = triton.cdiv(rows, _BACKWARD_WARPS)
    programs = row_programs(tiles, device=sum_ND.device, a_processor=6 if width <= 512 else 4)
    partials_KPD = sum_ND.new_empty((3, programs, width), dtype=torch.float32)
    _backward[programs,](
        grad_normed_ND,
        grad_sum_ND,
        sum_ND,
        weight_D,
        grad_x_ND,
        grad_change_ND,
        partials_KPD,
        seed,
        site,
        threshold_of(share),
        1 / (1 - share),
        rows,
        IS_LAYER=kind == "layer",
        EPSILON=epsilon,
        HAS_DROPOUT=has_change and share > 0,
        HAS_BIAS=bias_grad_D is not None,
        HAS_CHANGE_BIAS=change_bias_grad_D is not None,
        **_tile(width, _BACKWARD_WARPS, MOST_COLUMNS),
    )
    add_partials(partials_KPD, [weight_grad_D, bias_grad_D, change_bias_grad_D])
    return grad_x_ND, grad_x_ND if has_change and is_same else grad_change_ND


def _tile(width: int, warps: int, columns: int) -> dict[str, int]:
    chunk = min(columns, triton.next_power_of_2(width))
    chunks = triton.next_power_of_2(triton.cdiv(width, chunk))
    return {"D": width, "ROWS": warps, "CHUNKS": chunks, "CHUNK": chunk, "num_warps": warps}


@triton.jit
def _columns(ROWS: tl.constexpr, CHUNKS: tl.constexpr, CHUNK: tl.constexpr):
    # Repeated for every row, as each warp is to load the numbers of its columns for itself.
    rows = tl.arange(0, ROWS)[:, None, None] * 0
    return rows + tl.arange(0, CHUNKS)[None, :, None] * CHUNK + tl.arange(0, CHUNK)[None, None, :]


@triton.jit
def _row_mean(x, D: tl.constexpr):
    return tl.sum(tl.sum(x, 1, keep_dims=True), 2, keep_dims=True) * (1.0 / D)


@triton.jit
def _standardise(x, is_column, D: tl.constexpr, IS_LAYER: tl.constexpr, EPSILON: tl.constexpr):
    """The rows without their mean (where that is asked for) and of size 1, and what they were multiplied with."""
    if IS_LAYER:
        x = tl.where(is_column, x - _row_mean(x, D), 0)
    scale = tl.rsqrt(_row_mean(x * x, D) + EPSILON)
    return x * scale, scale


@triton.jit(do_not_specialize=["site", "threshold"])
def _forward(
    x_ptr,
    change_ptr,
    change_bias_ptr,
    weight_ptr,
    bias_ptr,
    sum_ptr,
    normed_ptr,
    values_ptr,
    scales_ptr,
    seed_ptr,
    site,
    threshold,
    factor,
    rows,
    IS_LAYER: tl.constexpr,
    EPSILON: tl.constexpr,
    HAS_DROPOUT: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    columns = _columns(ROWS, CHUNKS, CHUNK)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]
    places = row * D + columns
    is_column = columns < D
    mask = is_column & (row < rows)
    x = tl.load(x_ptr + places, mask=mask, other=0).to(tl.float32)
    if change_ptr is not None:
        change = tl.load(change_ptr + places, mask=mask, other=0).to(tl.float32)
        if change_bias_ptr is not None:
            change += tl.load(change_bias_ptr + columns, mask=is_column, other=0).to(tl.float32)
        if HAS_DROPOUT:
            change = tl.where(kept(seed_ptr, site, places, threshold), change * factor, 0)
        # Backward knows the rounded sum alone, so that one is normalised.
        rounded = (x + change).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + places, rounded, mask=mask)
        x = tl.where(is_column, rounded.to(tl.float32), 0)
    x, _ = _standardise(x, is_column, D, IS_LAYER, EPSILON)
    normed = x * tl.load(weight_ptr + columns, mask=is_column, other=0).to(tl.float32)
    if bias_ptr is not None:
        normed += tl.load(bias_ptr + columns, mask=is_column, other=0).to(tl.float32)
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)
    if values_ptr is not None:
        store_quarter(values_ptr, scales_ptr, normed, places, row, mask, rows)


@triton.jit(do_not_specialize=["site", "threshold"])
def _backward(
    grad_normed_ptr,
    grad_sum_ptr,
    sum_ptr,
    weight_ptr,
    grad_x_ptr,
    grad_change_ptr,
    partials_ptr,
    seed_ptr,
    site,
    threshold,
    factor,
    rows,
    IS_LAYER: tl.constexpr,
    EPSILON: tl.constexpr,
    HAS_DROPOUT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_CHANGE_BIAS: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    columns = _columns(ROWS, CHUNKS, CHUNK)
    is_column = columns < D
    if HAS_DROPOUT:
        first, second = keys_of(seed_ptr, site)
    weight_sums = tl.zeros((ROWS, CHUNKS, CHUNK), tl.float32)
    bias_sums = tl.zeros((ROWS, CHUNKS, CHUNK), tl.float32)
    change_sums = tl.zeros((ROWS, CHUNKS, CHUNK), tl.float32)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]
    next_x, next_grad, next_sum = _load(sum_ptr, grad_normed_ptr, grad_sum_ptr, row, columns, rows, D)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=1):
        row = tile * ROWS + tl.arange(0, ROWS)[:, None, None]
        places = row * D + columns
        mask = is_column & (row < rows)
        x, grad, grad_sum = next_x.to(tl.float32), next_grad.to(tl.float32), next_sum
        # The next rows are on their way while these are worked on.
        row += tl.num_programs(0) * ROWS
        next_x, next_grad, next_sum = _load(sum_ptr, grad_normed_ptr, grad_sum_ptr, row, columns, rows, D)
        # Loaded anew for each row, as registers are scarce.
        weight = tl.load(weight_ptr + columns, mask=is_column, other=0).to(tl.float32)
        x, scale, shift, along = _centred(x, grad * weight, is_column, D, IS_LAYER, EPSILON)
        weight_sums += grad * scale * x
        if HAS_BIAS:
            bias_sums += grad
        change = grad_sum.to(tl.float32) - shift + x * along + grad * scale * weight
        tl.store(grad_x_ptr + places, change.to(grad_x_ptr.dtype.element_ty), mask=mask)
        if HAS_DROPOUT:
            change = tl.where(kept_by(first, second, places, threshold), change * factor, 0)
        if grad_change_ptr is not None:
            tl.store(grad_change_ptr + places, change.to(grad_change_ptr.dtype.element_ty), mask=mask)
        if HAS_CHANGE_BIAS:
            change_sums += change
    _store_sums(partials_ptr, weight_sums, D, CHUNKS, CHUNK)
    if HAS_BIAS:
        _store_sums(partials_ptr + tl.num_programs(0) * D, bias_sums, D, CHUNKS, CHUNK)
    if HAS_CHANGE_BIAS:
        _store_sums(partials_ptr + 2 * tl.num_programs(0) * D, change_sums, D, CHUNKS, CHUNK)


@triton.jit
def _load(sum_ptr, grad_normed_ptr, grad_sum_ptr, row, columns, rows, D: tl.constexpr):
    places = row * D + columns
    mask = (columns < D) & (row < rows)
    x = tl.load(sum_ptr + places, mask=mask, other=0)
    grad = tl.load(grad_normed_ptr + places, mask=mask, other=0)
    grad_sum = tl.zeros_like(x)
    if grad_sum_ptr is not None:
        grad_sum = tl.load(grad_sum_ptr + places, mask=mask, other=0)
    return x, grad, grad_sum


@triton.jit
def _centred(x, grad, is_column, D: tl.constexpr, IS_LAYER: tl.constexpr, EPSILON: tl.constexpr):
    """Rows less their mean, their scale, and what their gradient loses everywhere and gains with each x."""
    shift = 0.0
    # Sums that need not wait for each other stand together, as their way through a warp is long.
    if IS_LAYER:
        mean, shift = _row_mean(x, D), _row_mean(grad, D)
        x = tl.where(is_column, x - mean, 0)
    square, along = _row_mean(x * x, D), _row_mean(grad * x, D)
    scale = tl.rsqrt(square + EPSILON)
    return x, scale, shift * scale, -along * scale * scale * scale


@triton.jit
def _store_sums(partials_ptr, sums, D: tl.constexpr, CHUNKS: tl.constexpr, CHUNK: tl.constexpr):
    columns = tl.arange(0, CHUNKS)[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    tl.store(partials_ptr + tl.program_id(0) * D + columns, tl.sum(sums, 0), mask=columns < D)
