"""The matrices of a model in fp8, as they are and turned, all of them in two launches."""

# Shapes: F rows of a matrix (what comes out of its map), D columns (what goes in), P numbers of all matrices,
# L lines (rows and columns) of all matrices, T tiles.

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, product

import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.quantize import QUARTER, Quarter, scale_of, stored_as

__all__ = ["SIDES", "QuarterMatrices", "QuarterMatrix"]

SIDES = 16
"""What must divide the sides of a matrix."""

_TILE = 128
_AT_ONCE = 256
_WARPS = 8
_ALIGNED = tl.constexpr(SIDES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuarterMatrix:
    """A matrix in fp8. All of it has one scale, as its numbers are of one size: turned, it holds the same ones."""

    straight: Quarter
    """[F, D]"""
    turned: Quarter
    """[D, F]"""


class QuarterMatrices:
    """Matrices that lie in one storage, in fp8; `renew` follows them when they change."""

    def __init__(self, halves: Sequence[Tensor]) -> None:
        """Contiguous views of one storage."""
        first = halves[0]
        self._flat = first.new_empty(0).set_(first.untyped_storage())
        self._values_2P = first.new_empty((2, sum(map(Tensor.numel, halves))), dtype=QUARTER)
        self._scales_L = first.new_empty(sum(sum(half.shape) for half in halves), dtype=torch.float32)
        self._table = _table(halves).to(first.device)
        self._largest_T = first.new_empty(len(self._table), dtype=torch.float32)
        self.matrices = tuple(self._cut(halves))

    def renew(self) -> None:
        """Quantise the matrices as they are now."""
        grid, tile = (len(self._table),), {"TILE": _TILE, "num_warps": _WARPS}
        _find_largest[grid](self._flat, self._table, self._largest_T, **tile)
        written_2P = self._values_2P.to(stored_as(self._flat.device))
        _quantize[grid](
            self._flat,
            self._table,
            self._largest_T,
            written_2P[0],
            written_2P[1],
            self._scales_L,
            AT_ONCE=_AT_ONCE,
            **tile,
        )
        if written_2P is not self._values_2P:
            self._values_2P.copy_(written_2P)

    def _cut(self, halves: Sequence[Tensor]) -> list[QuarterMatrix]:
        values = self._values_2P.split([half.numel() for half in halves], dim=1)
        scales = self._scales_L.split([side for half in halves for side in half.shape])
        return [
            QuarterMatrix(
                straight=Quarter(values=straight.view(half.shape), scales=of_rows[:, None]),
                turned=Quarter(values=turned.view(half.shape[::-1]), scales=of_columns[:, None]),
            )
            for half, (straight, turned), of_rows, of_columns in zip(
                halves, values, scales[::2], scales[1::2], strict=True
            )
        ]


def _table(halves: Sequence[Tensor]) -> Tensor:
    """[T, 9] int64, for each tile: where its matrix begins, rows, columns, the tile's first row and column; first tile
    and number of tiles of the matrix; where its fp8 numbers and its scales go.
    """
    values = accumulate((half.numel() for half in halves), initial=0)
    scales = accumulate((sum(half.shape) for half in halves), initial=0)
    table: list[tuple[int, ...]] = []
    for half, value, scale in zip(halves, values, scales, strict=False):
        rows, columns = half.shape
        corners = list(product(range(0, rows, _TILE), range(0, columns, _TILE)))
        around = (len(table), len(corners), value, scale)
        table += [(int(half.storage_offset()), rows, columns, *corner, *around) for corner in corners]
    return torch.tensor(table)


@triton.jit
def _load(flat_ptr, table_ptr, TILE: tl.constexpr):
    """A tile, its places in the matrix, and what is in the matrix."""
    line_ptr = table_ptr + tl.program_id(0) * 9
    begin = tl.multiple_of(tl.load(line_ptr), _ALIGNED)
    columns = tl.multiple_of(tl.load(line_ptr + 2), _ALIGNED)
    row = tl.multiple_of(tl.load(line_ptr + 3), TILE) + tl.arange(0, TILE)[:, None]
    column = tl.multiple_of(tl.load(line_ptr + 4), TILE) + tl.arange(0, TILE)[None, :]
    rows = tl.multiple_of(tl.load(line_ptr + 1), _ALIGNED)
    mask = (row < rows) & (column < columns)
    x = tl.load(flat_ptr + begin + row * columns + column, mask=mask, other=0).to(tl.float32)
    return x, row, column, rows, columns


@triton.jit
def _find_largest(flat_ptr, table_ptr, largest_ptr, TILE: tl.constexpr):
    x, _, _, _, _ = _load(flat_ptr, table_ptr, TILE)
    tl.store(largest_ptr + tl.program_id(0), tl.max(tl.max(tl.abs(x), 1), 0))


@triton.jit
def _quantize(
    flat_ptr,
    table_ptr,
    largest_ptr,
    straight_ptr,
    turned_ptr,
    scales_ptr,
    TILE: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    x, row, column, rows, columns = _load(flat_ptr, table_ptr, TILE)
    line_ptr = table_ptr + tl.program_id(0) * 9
    first, tiles = tl.load(line_ptr + 5), tl.load(line_ptr + 6)
    most = tl.zeros((AT_ONCE,), tl.float32)
    for start in range(0, tiles, AT_ONCE):
        tile = start + tl.arange(0, AT_ONCE)
        most = tl.maximum(most, tl.load(largest_ptr + first + tile, mask=tile < tiles, other=0))
    scale, factor = scale_of(tl.max(most, 0))
    values = (x * factor).to(straight_ptr.dtype.element_ty)
    begin = tl.multiple_of(tl.load(line_ptr + 7), _ALIGNED)
    tl.store(straight_ptr + begin + row * columns + column, values, mask=(row < rows) & (column < columns))
    own_row = tl.multiple_of(tl.load(line_ptr + 3), TILE) + tl.arange(0, TILE)
    own_column = tl.multiple_of(tl.load(line_ptr + 4), TILE) + tl.arange(0, TILE)
    turned_mask = (own_column < columns)[:, None] & (own_row < rows)[None, :]
    turned_places = begin + own_column[:, None] * rows + own_row[None, :]
    tl.store(turned_ptr + turned_places, tl.trans(values), mask=turned_mask)
    # Every tile of a row or column writes the same.
    scales_ptr += tl.load(line_ptr + 8)
    scales = tl.full((TILE,), 0, tl.float32) + scale
    tl.store(scales_ptr + own_row, scales, mask=own_row < rows)
    tl.store(scales_ptr + rows + own_column, scales, mask=own_column < columns)
