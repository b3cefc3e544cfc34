"""Sums down the columns of a tall matrix, in an order that is the same in every run."""

# Shapes: N rows, C columns, K sums that are made together, P programs that each sum a part of the rows.

from collections.abc import Sequence
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["MOST_COLUMNS", "add_column_sums", "add_partials", "row_programs"]

MOST_COLUMNS = 256
"""Columns of one program: what the threads of a warp read with 16 bytes each."""

_WARPS = 4
_ROWS_A_WARP = 8
_PROGRAMS_A_PROCESSOR = 4
_PARTIALS_AT_ONCE = 512
_SUMS_AT_ONCE = 16


def add_column_sums(y_NC: Tensor, into_C: Tensor) -> None:
    """Add the sum of each column to an fp32 vector; rows may lie apart."""
    rows, columns = y_NC.shape
    block = min(MOST_COLUMNS, triton.next_power_of_2(columns))
    blocks = triton.cdiv(columns, block)
    tiles = triton.cdiv(rows, _WARPS * _ROWS_A_WARP)
    programs = row_programs(tiles, share=blocks, device=y_NC.device)
    partials_KPC = y_NC.new_empty((1, programs, columns), dtype=torch.float32)
    _partial_sums[programs, blocks](
        y_NC,
        partials_KPC,
        rows,
        y_NC.stride(0),
        C=columns,
        WARPS=_WARPS,
        ROWS=_ROWS_A_WARP,
        COLUMNS=block,
        num_warps=_WARPS,
    )
    add_partials(partials_KPC, [into_C])


def add_partials(partials_KPC: Tensor, into: Sequence[Tensor | None]) -> None:
    """Add up what programs have summed, to at most three vectors; a sum without one is left alone."""
    _, programs, columns = partials_KPC.shape
    first, second, third = [*into, None, None][:3]
    _add_partials[triton.cdiv(columns, _SUMS_AT_ONCE), len(into)](
        partials_KPC,
        first,
        second,
        third,
        programs,
        C=columns,
        ROWS=min(_PARTIALS_AT_ONCE, triton.next_power_of_2(programs)),
        COLUMNS=_SUMS_AT_ONCE,
        num_warps=8,
    )


def row_programs(
    tiles: int, *, share: int = 1, device: torch.device, a_processor: int = _PROGRAMS_A_PROCESSOR
) -> int:
    """How many programs walk the tiles of rows, where each of `share` column blocks has so many of its own."""
    return max(1, min(tiles, _processors(device) * a_processor // share))


@cache
def _processors(device: torch.device) -> int:
    # Where there is no GPU, a few programs show the same behaviour as many.
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@triton.jit
def _partial_sums(
    y_ptr,
    partials_ptr,
    rows,
    stride,
    C: tl.constexpr,
    WARPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    # Each warp sums rows of its own, and the next ones are on their way meanwhile.
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, None, :]
    own_row = tl.arange(0, WARPS)[:, None, None] * ROWS + tl.arange(0, ROWS)[None, :, None]
    sums = tl.zeros((WARPS, COLUMNS), tl.float32)
    later = _load(y_ptr, tl.program_id(0) * (WARPS * ROWS) + own_row, columns, rows, stride, C)
    for tile in range(tl.program_id(0), tl.cdiv(rows, WARPS * ROWS), tl.num_programs(0)):
        y = later
        row = (tile + tl.num_programs(0)) * (WARPS * ROWS) + own_row
        later = _load(y_ptr, row, columns, rows, stride, C)
        sums += tl.sum(y.to(tl.float32), 1)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(partials_ptr + tl.program_id(0) * C + columns, tl.sum(sums, 0), mask=columns < C)


@triton.jit
def _load(y_ptr, row, columns, rows, stride, C: tl.constexpr):
    places = row.to(tl.int64) * stride + columns
    return tl.load(y_ptr + places, mask=(row < rows) & (columns < C), other=0)


@triton.jit
def _add_partials(
    partials_ptr,
    first_ptr,
    second_ptr,
    third_ptr,
    programs,
    C: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    which = tl.program_id(1)
    if which == 0:
        _add_up(partials_ptr, first_ptr, which, programs, C, ROWS, COLUMNS)
    elif which == 1:
        _add_up(partials_ptr, second_ptr, which, programs, C, ROWS, COLUMNS)
    else:
        _add_up(partials_ptr, third_ptr, which, programs, C, ROWS, COLUMNS)


@triton.jit
def _add_up(
    partials_ptr, into_ptr, which, programs, C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    if into_ptr is not None:
        columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, programs, ROWS):
            row = start + tl.arange(0, ROWS)
            places = (which * programs + row)[:, None] * C + columns[None, :]
            mask = (row < programs)[:, None] & (columns < C)[None, :]
            sums += tl.load(partials_ptr + places, mask=mask, other=0)
        into = into_ptr + columns
        tl.store(into, tl.load(into, mask=columns < C) + tl.sum(sums, 0), mask=columns < C)
