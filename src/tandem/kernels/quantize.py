"""Rows in fp8, each with a scale of its own: what products of matrices read, made on the way of something else."""

# Shapes: N rows, C columns, K sums of columns, P programs.
# In kernels a tile has the shape [ROWS, CHUNKS, CHUNK], where a warp reads a chunk with 32 bytes each.

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.columns import add_partials, row_programs

__all__ = [
    "QUARTER",
    "Quarter",
    "empty_quarter",
    "finished",
    "quantize",
    "quantize_gradient_",
    "quantize_rectified_",
    "scale_of",
    "store_quarter",
    "stored_as",
]

QUARTER = torch.float8_e4m3fn
"""For gradients too: with a scale for each row they need no wider range, and this type has the finer steps."""

_CHUNK = 512
_TILE = 4096
"""Numbers of one program at a time, or one row where that is longer."""
_WARPS = 4
_SUMMING_WARPS = 8

_LARGEST = tl.constexpr(448.0)
_LEAST = tl.constexpr(1e-30)
"""A row of smaller numbers, or of zeros, is scaled as if this were its largest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quarter:
    """A matrix of fp8 numbers; a row times its scale is what it stands for."""

    values: Tensor
    """[N, C]"""
    scales: Tensor
    """[N, 1] fp32"""


def quantize(x_NC: Tensor) -> Quarter:
    """The rows in fp8."""
    quarter = empty_quarter(x_NC)
    _launch(x_NC.contiguous(), quarter, rectifies=False)
    return finished(quarter)


def quantize_rectified_(x_NC: Tensor) -> Quarter:
    """ReLU in place, and the result in fp8."""
    quarter = empty_quarter(x_NC)
    _launch(x_NC, quarter, rectifies=True)
    return finished(quarter)


def quantize_gradient_(grad_NC: Tensor, active_NC: Tensor | None, *, sums_C: Tensor) -> Quarter:
    """The gradient in fp8; its column sums are added (fp32). Given what ReLU made, it first goes back through that."""
    rows, width = grad_NC.shape
    quarter = empty_quarter(grad_NC)
    tile = _tile(width)
    tiles = triton.cdiv(rows, tile["ROWS"])
    programs = row_programs(tiles, device=grad_NC.device, a_processor=_resident(width, active_NC))
    partials_KPC = grad_NC.new_empty((1, programs, width), dtype=torch.float32)
    _quantize_gradient[programs,](
        grad_NC if active_NC is not None else grad_NC.contiguous(),
        active_NC,
        quarter.values,
        quarter.scales,
        partials_KPC,
        rows,
        **tile,
        num_warps=_SUMMING_WARPS,
    )
    add_partials(partials_KPC, [sums_C])
    return finished(quarter)


def empty_quarter(x_NC: Tensor) -> Quarter:
    """Room for the rows of a tensor; `finished` once a kernel has filled it."""
    scales = x_NC.new_empty((len(x_NC), 1), dtype=torch.float32)
    return Quarter(values=torch.empty_like(x_NC, dtype=stored_as(x_NC.device)), scales=scales)


def stored_as(device: torch.device) -> torch.dtype:
    """What kernels write for fp8 numbers."""
    # Triton's interpreter rounds to fp8 wrongly: there the numbers are rounded after the kernel.
    return QUARTER if device.type == "cuda" else torch.float32


def finished(quarter: Quarter) -> Quarter:
    """With the numbers in fp8, also where a kernel could not write them so."""
    return Quarter(values=quarter.values.to(QUARTER), scales=quarter.scales)


def _launch(x_NC: Tensor, quarter: Quarter, *, rectifies: bool) -> None:
    rows, width = x_NC.shape
    tile = _tile(width)
    _quantize[triton.cdiv(rows, tile["ROWS"]),](
        x_NC,
        quarter.values,
        quarter.scales,
        rows,
        RECTIFIES=rectifies,
        **tile,
        num_warps=_WARPS,
    )


def _resident(width: int, active_NC: Tensor | None) -> int:
    """Programs that a processor's registers hold at once."""
    if active_NC is None:
        return 4
    return 3 if width > _TILE // 2 else 2


def _tile(width: int) -> dict[str, int]:
    chunk = min(_CHUNK, triton.next_power_of_2(width))
    chunks = triton.next_power_of_2(triton.cdiv(width, chunk))
    return {"C": width, "ROWS": max(1, _TILE // (chunk * chunks)), "CHUNKS": chunks, "CHUNK": chunk}


@triton.jit
def store_quarter(values_ptr, scales_ptr, x, places, row, mask, rows):
    """Store rows [ROWS, CHUNKS, CHUNK] in fp8, and their scales; what is masked is zero in x."""
    largest = tl.max(tl.max(tl.abs(x), 2, keep_dims=True), 1, keep_dims=True)
    scale, factor = scale_of(largest)
    tl.store(values_ptr + places, (x * factor).to(values_ptr.dtype.element_ty), mask=mask)
    tl.store(scales_ptr + row, scale, mask=row < rows)


@triton.jit
def scale_of(largest):
    """The scale that fp8 numbers are to have whose largest is this, and what to multiply with before they are made."""
    largest = tl.maximum(largest, _LEAST)
    return largest * (1 / _LARGEST), _LARGEST / largest


@triton.jit
def _quantize(
    x_ptr,
    values_ptr,
    scales_ptr,
    rows,
    RECTIFIES: tl.constexpr,
    C: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]
    columns = tl.arange(0, CHUNKS)[None, :, None] * CHUNK + tl.arange(0, CHUNK)[None, None, :]
    mask = (row < rows) & (columns < C)
    places = row * C + columns
    x = tl.load(x_ptr + places, mask=mask, other=0)
    if RECTIFIES:
        # NaN must not become a number.
        x = tl.where(x < 0, 0, x)
        tl.store(x_ptr + places, x, mask=mask)
    store_quarter(values_ptr, scales_ptr, x.to(tl.float32), places, row, mask, rows)


@triton.jit
def _quantize_gradient(
    grad_ptr,
    active_ptr,
    values_ptr,
    scales_ptr,
    partials_ptr,
    rows,
    C: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    columns = tl.arange(0, CHUNKS)[None, :, None] * CHUNK + tl.arange(0, CHUNK)[None, None, :]
    sums = tl.zeros((ROWS, CHUNKS, CHUNK), tl.float32)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]
    next_grad, next_active = _load(grad_ptr, active_ptr, row, columns, rows, C)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=1):
        row = tile * ROWS + tl.arange(0, ROWS)[:, None, None]
        mask = (row < rows) & (columns < C)
        places = row * C + columns
        grad = next_grad
        if active_ptr is not None:
            grad = tl.where(next_active > 0, grad, 0)
        # The next rows are on their way while these are worked on.
        later = row + tl.num_programs(0) * ROWS
        next_grad, next_active = _load(grad_ptr, active_ptr, later, columns, rows, C)
        if active_ptr is not None:
            tl.store(grad_ptr + places, grad, mask=mask)
        grad = grad.to(tl.float32)
        sums += grad
        store_quarter(values_ptr, scales_ptr, grad, places, row, mask, rows)
    columns = tl.arange(0, CHUNKS)[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    tl.store(partials_ptr + tl.program_id(0) * C + columns, tl.sum(sums, 0), mask=columns < C)


@triton.jit
def _load(grad_ptr, active_ptr, row, columns, rows, C: tl.constexpr):
    places = row * C + columns
    mask = (row < rows) & (columns < C)
    grad = tl.load(grad_ptr + places, mask=mask, other=0)
    active = grad
    if active_ptr is not None:
        active = tl.load(active_ptr + places, mask=mask, other=0)
    return grad, active
