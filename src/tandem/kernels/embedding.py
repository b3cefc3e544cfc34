"""Rows of the embedding with their sinusoids, dropped; and the sum of their gradients without atomics."""

# Shapes: N tokens, V vocabulary, D width, G groups of sorted tokens.

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.random import kept, threshold_of

__all__ = ["SortedIds", "backward", "forward", "sort_ids"]

_ROWS = 8
_GROUP = 16
_GROUP_COLUMNS = 128
_PARTS_AT_ONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SortedIds:
    """The ids of a batch in order, so that equal ones lie side by side."""

    ids: Tensor
    """[N]"""
    rows: Tensor
    """[N] int64: where each of them stood."""


def sort_ids(ids_N: Tensor) -> SortedIds:
    """What backward needs to know of the ids; it may be made at any time before."""
    ids_N, rows_N = torch.sort(ids_N, stable=True)
    return SortedIds(ids=ids_N, rows=rows_N)


def forward(
    ids_N: Tensor,
    positions_N: Tensor,
    weight_VD: Tensor,
    *,
    scale: float,
    sinusoidal: bool,
    share: float,
    seed: Tensor,
    site: int,
    dtype: torch.dtype,
) -> Tensor:
    """[N, D] in `dtype`: row · scale + sinusoids of the position, dropped."""
    tokens, width = len(ids_N), weight_VD.shape[1]
    x_ND = weight_VD.new_empty((tokens, width), dtype=dtype)
    _forward[triton.cdiv(tokens, _ROWS),](
        ids_N,
        positions_N,
        weight_VD,
        x_ND,
        seed,
        site,
        threshold_of(share),
        1 / (1 - share),
        scale,
        tokens,
        IS_SINUSOIDAL=sinusoidal,
        STEP=-math.log(10_000) / max(width // 2 - 1, 1),
        HAS_DROPOUT=share > 0,
        D=width,
        ROWS=_ROWS,
        HALF=triton.next_power_of_2(triton.cdiv(width, 2)),
        num_warps=4,
    )
    return x_ND


def backward(
    grad_x_ND: Tensor,
    sorted_ids: SortedIds,
    *,
    scale: float,
    share: float,
    seed: Tensor,
    site: int,
    weight_grad_VD: Tensor,
) -> None:
    """Add scale · dropped gradient to the rows of the ids, in fp32 and always in the same order."""
    tokens, width = grad_x_ND.shape
    groups = triton.cdiv(tokens, _GROUP)
    block = min(_GROUP_COLUMNS, max(16, triton.next_power_of_2(width)))
    blocks = triton.cdiv(width, block)
    parts_G2D = grad_x_ND.new_empty((groups, 2, width), dtype=torch.float32)
    _sum_groups[groups, blocks](
        grad_x_ND,
        sorted_ids.ids,
        sorted_ids.rows,
        weight_grad_VD,
        parts_G2D,
        seed,
        site,
        threshold_of(share),
        scale / (1 - share),
        tokens,
        HAS_DROPOUT=share > 0,
        D=width,
        GROUP=_GROUP,
        COLUMNS=block,
        num_warps=4,
    )
    _join_groups[groups, blocks](
        sorted_ids.ids,
        weight_grad_VD,
        parts_G2D,
        tokens,
        groups,
        D=width,
        GROUP=_GROUP,
        PARTS=_PARTS_AT_ONCE,
        COLUMNS=block,
        num_warps=4,
    )


@triton.jit(do_not_specialize=["site", "threshold"])
def _forward(
    ids_ptr,
    positions_ptr,
    weight_ptr,
    x_ptr,
    seed_ptr,
    site,
    threshold,
    factor,
    scale,
    tokens,
    IS_SINUSOIDAL: tl.constexpr,
    STEP: tl.constexpr,
    HAS_DROPOUT: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    HALF: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    rows = tl.load(ids_ptr + row, mask=row < tokens, other=0).to(tl.int64) * D
    wave = tl.arange(0, HALF)[None, :]
    # Sines fill the first half of the width and cosines the second; an odd width has a last column of its own.
    mask = (row < tokens) & (wave < D // 2)
    first = tl.load(weight_ptr + rows + wave, mask=mask, other=0).to(tl.float32) * scale
    second = tl.load(weight_ptr + rows + D // 2 + wave, mask=mask, other=0).to(tl.float32) * scale
    if IS_SINUSOIDAL:
        place = tl.load(positions_ptr + row, mask=row < tokens, other=0).to(tl.float32)
        sines, cosines = _sines_and_cosines(place * tl.exp(wave.to(tl.float32) * STEP))
        first += sines
        second += cosines
    for part in tl.static_range(2 + D % 2):
        places = row * D + part * (D // 2) + wave
        x = first if part == 0 else second
        if part == 2:
            mask = (row < tokens) & (wave < 1)
            x = tl.load(weight_ptr + rows + D - 1 + wave, mask=mask, other=0).to(tl.float32) * scale
        if HAS_DROPOUT:
            x = tl.where(kept(seed_ptr, site, places, threshold), x * factor, 0)
        tl.store(x_ptr + places, x.to(x_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _sines_and_cosines(angles):
    """Right to 1e-6 for angles from 0 to 65,536."""
    # Adding 1.5 · 2**23 rounds to whole quarter turns and leaves their number in the lowest bits.
    shifted = tl.fma(angles, 0.6366197723675814, 12582912.0)
    quarters = shifted - 12582912.0
    # A quarter turn has more digits than one number holds.
    rest = tl.fma(quarters, -1.5707963705062866, angles)
    rest = tl.fma(quarters, 4.371139000186243e-8, rest)
    square = rest * rest
    sine = (-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1
    sine = sine * square * rest + rest
    cosine = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    cosine = cosine * square * square - 0.5 * square + 1.0
    quarter = shifted.to(tl.int32, bitcast=True)
    is_odd = (quarter & 1) != 0
    sines = tl.where(is_odd, cosine, sine)
    cosines = tl.where(is_odd, sine, cosine)
    return tl.where((quarter & 2) != 0, -sines, sines), tl.where(((quarter + 1) & 2) != 0, -cosines, cosines)


@triton.jit(do_not_specialize=["site", "threshold"])
def _sum_groups(
    grad_ptr,
    ids_ptr,
    rows_ptr,
    weight_grad_ptr,
    parts_ptr,
    seed_ptr,
    site,
    threshold,
    scale,
    tokens,
    HAS_DROPOUT: tl.constexpr,
    D: tl.constexpr,
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sum equal ids of a group; an id that reaches into other groups leaves its part for `_join_groups`."""
    group = tl.program_id(0)
    start, end = group * GROUP, tl.minimum(group * GROUP + GROUP, tokens)
    sorted_place = start + tl.arange(0, GROUP)
    is_token = sorted_place < tokens
    ids = tl.load(ids_ptr + sorted_place, mask=is_token, other=-1)
    rows = tl.load(rows_ptr + sorted_place, mask=is_token, other=0).to(tl.int32)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    places = rows[:, None] * D + columns
    grad = tl.load(grad_ptr + places, mask=is_token[:, None] & (columns < D), other=0)
    before = tl.load(ids_ptr + sorted_place - 1, mask=is_token & (sorted_place > 0), other=-1)
    is_first = is_token & ((ids != before) | (sorted_place == start))
    comes_from_before = ids == tl.load(ids_ptr + start - 1, mask=start > 0, other=-1)
    is_part = comes_from_before | (ids == tl.load(ids_ptr + end, mask=end < tokens, other=-1))
    slot = group * 2 + tl.where(comes_from_before, 0, 1)
    part = parts_ptr + slot[:, None] * D + columns
    own = weight_grad_ptr + ids.to(tl.int64)[:, None] * D + columns
    mask = is_first[:, None] & (columns < D)
    total = tl.load(own, mask=mask & ~is_part[:, None], other=0)
    if HAS_DROPOUT:
        grad = tl.where(kept(seed_ptr, site, places, threshold), grad, 0.0).to(grad.dtype)
    # Ones and zeros times gradients are exact: the product is the sum over equal ids, in fp32.
    is_equal = (ids[:, None] == ids[None, :]).to(grad.dtype)
    total += tl.dot(is_equal, grad, input_precision="ieee") * scale
    tl.store(tl.where(is_part[:, None], part, own), total, mask=mask)


@triton.jit
def _join_groups(
    ids_ptr,
    weight_grad_ptr,
    parts_ptr,
    tokens,
    groups,
    D: tl.constexpr,
    GROUP: tl.constexpr,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """For the id that begins in a group and goes on in later ones, add up the parts of all of them."""
    group = tl.program_id(0)
    start, end = group * GROUP, group * GROUP + GROUP
    goes_on = False
    if end < tokens:
        own_id = tl.load(ids_ptr + end - 1)
        before = tl.load(ids_ptr + start - 1, mask=start > 0, other=-1)
        goes_on = (own_id == tl.load(ids_ptr + end)) & (own_id != before)
    if goes_on:
        own_id = tl.load(ids_ptr + end - 1)
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        is_column = columns < D
        sums = tl.zeros((PARTS, COLUMNS), tl.float32)
        later = group + 1
        more = True
        while more:
            part = later + tl.arange(0, PARTS)
            firsts = tl.load(ids_ptr + part * GROUP, mask=part < groups, other=-1)
            is_own = firsts == own_id
            places = (part * 2 * D)[:, None] + columns[None, :]
            sums += tl.load(parts_ptr + places, mask=is_own[:, None] & is_column[None, :], other=0)
            later += PARTS
            more = tl.min(is_own.to(tl.int32), 0) == 1
        total = tl.sum(sums, 0) + tl.load(parts_ptr + (group * 2 + 1) * D + columns, mask=is_column)
        own = weight_grad_ptr + own_id.to(tl.int64) * D + columns
        tl.store(own, tl.load(own, mask=is_column) + total, mask=is_column)
