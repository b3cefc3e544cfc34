"""Gradients to few bits and back, in one pass each."""

# Shapes: R blocks of a program, B = 64 numbers of a block, W bytes of its codes, P codes of a byte.

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["CODEC_BLOCK", "CodecConstants", "decode_blocks", "encode_blocks"]

CODEC_BLOCK = 64
"""Numbers that share a scale."""

_BLOCKS_A_PROGRAM = 32
_WARPS = 4
_BITS_OF_SCALES = torch.int16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodecConstants:
    """What codes mean; tensors are on the device, and what is made of numbers is as `tandem.parallel` defines it."""

    bits: int
    rotation: Tensor
    """fp16, 64 × 64, of 1 and -1."""
    codes: Tensor
    """uint8: the code of each bin, of which half stand for negative numbers."""
    levels: Tensor
    """fp16: the whole number of each code."""
    bins_a_deviation: float
    root_grid: float
    least_mean_share: float
    grid: float
    scale_units: float
    root_bits: int
    smallest: float


def encode_blocks(
    values: Tensor,
    second_moment: Tensor,
    codes: Tensor,
    scales: Tensor,
    *,
    constants: CodecConstants,
    residual: Tensor | None = None,
    unscale: float | Tensor = 1.0,
    remainder: Tensor | None = None,
) -> None:
    """Write codes and scales of values * unscale + residual, and what these lack of it.

    All are flat and contiguous, and of whole blocks. Nothing is allocated, and the host waits for nothing.
    """
    blocks = values.numel() // CODEC_BLOCK
    _encode[(triton.cdiv(blocks, _BLOCKS_A_PROGRAM),)](
        values,
        residual,
        unscale,
        second_moment,
        codes,
        # As bits: rounding to bf16 is then the same wherever the kernel runs.
        scales.view(_BITS_OF_SCALES),
        remainder,
        constants.rotation,
        constants.codes,
        constants.levels,
        blocks,
        UNSCALE_IS_TENSOR=isinstance(unscale, Tensor),
        BINS_A_DEVIATION=constants.bins_a_deviation,
        GRID=constants.grid,
        SMALLEST=constants.smallest,
        SENT=constants.scale_units / constants.grid / CODEC_BLOCK,
        BINS=constants.codes.numel(),
        **_shared(constants),
    )


def decode_blocks(
    codes: Tensor,
    scales: Tensor,
    second_moment: Tensor,
    out: Tensor,
    *,
    constants: CodecConstants,
    add: bool = False,
) -> None:
    """Write the numbers that codes and scales stand for, or add them to what is there."""
    blocks = out.numel() // CODEC_BLOCK
    _decode[(triton.cdiv(blocks, _BLOCKS_A_PROGRAM),)](
        codes,
        scales.view(_BITS_OF_SCALES),
        second_moment,
        out,
        constants.rotation,
        constants.levels,
        blocks,
        ADD=add,
        **_shared(constants),
    )


def _shared(constants: CodecConstants) -> dict[str, float | int | bool]:
    return {
        "ROOT_GRID": constants.root_grid,
        "ROOT_BITS": constants.root_bits,
        "ADDED": constants.least_mean_share / CODEC_BLOCK,
        "RECEIVED": 1 / constants.scale_units,
        "BITS": constants.bits,
        "PARTS": 8 // constants.bits,
        "B": CODEC_BLOCK,
        "R": _BLOCKS_A_PROGRAM,
        "num_warps": _WARPS,
        # A product and a sum in one are rounded once: other bits than a processor's.
        "enable_fp_fusion": False,
    }


@triton.jit
def _encode(
    values_ptr,
    residual_ptr,
    unscale,
    second_ptr,
    codes_ptr,
    scales_ptr,
    remainder_ptr,
    rotation_ptr,
    code_ptr,
    level_ptr,
    blocks,
    UNSCALE_IS_TENSOR: tl.constexpr,
    BINS_A_DEVIATION: tl.constexpr,
    GRID: tl.constexpr,
    SMALLEST: tl.constexpr,
    SENT: tl.constexpr,
    BINS: tl.constexpr,
    ROOT_GRID: tl.constexpr,
    ROOT_BITS: tl.constexpr,
    ADDED: tl.constexpr,
    RECEIVED: tl.constexpr,
    BITS: tl.constexpr,
    PARTS: tl.constexpr,
    B: tl.constexpr,
    R: tl.constexpr,
):
    rows, inside = _rows(blocks, R)
    places = rows.to(tl.int64)[:, None] * B + tl.arange(0, B)[None, :]
    rotation = _rotation(rotation_ptr, B)
    x = _sum_up(values_ptr, residual_ptr, unscale, places, inside, UNSCALE_IS_TENSOR)
    scaling = _scaling(second_ptr, places, inside, ROOT_GRID, ROOT_BITS, ADDED)
    whole, largest = _whole(tl.div_rn(x, scaling), GRID, SMALLEST)
    # Tensor cores do this exactly: their inputs are whole numbers that fp16 holds, and sums stay below 2**24.
    rotated = tl.dot(whole.to(tl.float16), rotation)
    deviation = tl.sqrt_rn(tl.sum(whole * whole, 1))
    deviation = tl.where(deviation < 1, 1.0, deviation)
    bins = rotated * (_reciprocal(deviation) * BINS_A_DEVIATION)[:, None]
    bins = bins + BINS // 2
    # NaN is below nothing: it comes to the last bin.
    bins = tl.where(bins < 0, 0.0, tl.where(bins < BINS - 1, bins, BINS - 1.0))
    code = tl.load(code_ptr + bins.to(tl.int32)).to(tl.int32)
    _store_codes(codes_ptr, code, rows, blocks, BITS, PARTS, B, R)
    level = tl.load(level_ptr + code)
    back = tl.dot(level, tl.trans(rotation))
    level = level.to(tl.float32)
    norm = tl.sqrt_rn(tl.sum(level * level, 1))
    fitted = tl.div_rn(tl.sum(back * whole, 1), norm * norm)
    bits = _bits_of_bf16(fitted * largest * SENT)
    tl.store(scales_ptr + rows, bits.to(tl.int16), mask=rows < blocks)
    if remainder_ptr is not None:
        scale = (bits << 16).to(tl.float32, bitcast=True) * RECEIVED
        tl.store(remainder_ptr + places, x - back * scale[:, None] * scaling, mask=inside)


@triton.jit
def _decode(
    codes_ptr,
    scales_ptr,
    second_ptr,
    out_ptr,
    rotation_ptr,
    level_ptr,
    blocks,
    ADD: tl.constexpr,
    ROOT_GRID: tl.constexpr,
    ROOT_BITS: tl.constexpr,
    ADDED: tl.constexpr,
    RECEIVED: tl.constexpr,
    BITS: tl.constexpr,
    PARTS: tl.constexpr,
    B: tl.constexpr,
    R: tl.constexpr,
):
    rows, inside = _rows(blocks, R)
    places = rows.to(tl.int64)[:, None] * B + tl.arange(0, B)[None, :]
    scaling = _scaling(second_ptr, places, inside, ROOT_GRID, ROOT_BITS, ADDED)
    code = _load_codes(codes_ptr, rows, blocks, BITS, PARTS, B, R)
    back = tl.dot(tl.load(level_ptr + code), tl.trans(_rotation(rotation_ptr, B)))
    bits = tl.load(scales_ptr + rows, mask=rows < blocks, other=0).to(tl.int32)
    scale = (bits << 16).to(tl.float32, bitcast=True) * RECEIVED
    found = back * scale[:, None] * scaling
    if ADD:
        found += tl.load(out_ptr + places, mask=inside, other=0.0)
    tl.store(out_ptr + places, found, mask=inside)


@triton.jit
def _rows(blocks, R: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    return rows, (rows < blocks)[:, None]


@triton.jit
def _rotation(rotation_ptr, B: tl.constexpr):
    return tl.load(rotation_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])


@triton.jit
def _sum_up(values_ptr, residual_ptr, unscale, places, inside, UNSCALE_IS_TENSOR: tl.constexpr):
    x = tl.load(values_ptr + places, mask=inside, other=0.0)
    if UNSCALE_IS_TENSOR:
        x *= tl.load(unscale)
    else:
        x *= unscale
    if residual_ptr is not None:
        x += tl.load(residual_ptr + places, mask=inside, other=0.0)
    return x


@triton.jit
def _scaling(
    second_ptr,
    places,
    inside,
    ROOT_GRID: tl.constexpr,
    ROOT_BITS: tl.constexpr,
    ADDED: tl.constexpr,
):
    second = tl.load(second_ptr + places, mask=inside, other=0.0)
    root = ((second.to(tl.int32, bitcast=True) >> 1) + ROOT_BITS).to(tl.float32, bitcast=True)
    largest = tl.max(root, 1)
    whole = _round(root * (_reciprocal(largest) * ROOT_GRID)[:, None])
    return whole + (tl.sum(whole, 1) * ADDED)[:, None]


@triton.jit
def _whole(scaled, GRID: tl.constexpr, SMALLEST: tl.constexpr):
    # A maximum loses NaN, but the numbers keep theirs.
    largest = tl.max(tl.abs(scaled), 1)
    largest = tl.where(largest < SMALLEST, SMALLEST, largest)
    return _round(scaled * (_reciprocal(largest) * GRID)[:, None]), largest


@triton.jit
def _reciprocal(x):
    return tl.div_rn(tl.zeros_like(x) + 1.0, x)


@triton.jit
def _round(x):
    """To the nearest whole number, to the even one of two: of numbers below 2**22."""
    return x + 12582912.0 - 12582912.0


@triton.jit
def _bits_of_bf16(x):
    """The bits of the nearest bf16 number, the even one of two; those of NaN are NaN's."""
    bits = x.to(tl.int32, bitcast=True)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded)


@triton.jit
def _store_codes(
    codes_ptr, code, rows, blocks, BITS: tl.constexpr, PARTS: tl.constexpr, B: tl.constexpr, R: tl.constexpr
):
    width: tl.constexpr = B // PARTS
    shifted = tl.reshape(code, (R, width, PARTS)) << (tl.arange(0, PARTS) * BITS)[None, None, :]
    places = rows.to(tl.int64)[:, None] * width + tl.arange(0, width)[None, :]
    tl.store(codes_ptr + places, tl.sum(shifted, 2).to(tl.uint8), mask=(rows < blocks)[:, None])


@triton.jit
def _load_codes(
    codes_ptr, rows, blocks, BITS: tl.constexpr, PARTS: tl.constexpr, B: tl.constexpr, R: tl.constexpr
):
    width: tl.constexpr = B // PARTS
    places = rows.to(tl.int64)[:, None] * width + tl.arange(0, width)[None, :]
    packed = tl.load(codes_ptr + places, mask=(rows < blocks)[:, None], other=0).to(tl.int32)
    shifted = packed[:, :, None] >> (tl.arange(0, PARTS) * BITS)[None, None, :]
    return tl.reshape(shifted & ((1 << BITS) - 1), (R, B))
