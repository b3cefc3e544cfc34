"""The gradients' codec as it would be written down: whole tensors, on any device."""

# Shapes: N blocks, B = 64 numbers of a block, W bytes of its codes, P codes of a byte.

import torch
from torch import Tensor

from tandem.parallel.codec_tables import BINS, BINS_A_DEVIATION, BLOCK, CodecTables, Sum

__all__ = [
    "GRID",
    "LEAST_MEAN_SHARE",
    "ROOT_BITS",
    "ROOT_GRID",
    "SCALE_UNITS",
    "SMALLEST",
    "PlainCodec",
]

LEAST_MEAN_SHARE = 0.1
"""Of a block's mean √v: added to each √v, so that numbers with a tiny v do not outweigh all others."""
ROOT_GRID = 65536.0
"""Roots of v are rounded to this fraction of their block's largest: their sum is then exact in any order."""
GRID = 512.0
"""Scaled numbers are rounded to this fraction of their block's largest, for the same reason.

Squares of whole numbers up to 512 sum to 2**24 at most, and fp16 holds them exactly, as tensor cores want them.
"""
SCALE_UNITS = 256.0
"""What a scale is multiplied by to be sent: so it stays in bf16's range where numbers are very small or large."""
ROOT_BITS = 127 << 22
"""Half of the exponent's offset, in the bits of an fp32 number. Zero's root is then no more than 2**-63.5."""
SMALLEST = 1e-35
"""Largest of a block by which it is still divided: the reciprocal is finite."""


class PlainCodec:
    """Encodes and decodes blocks by the definition; others find the same codes, and scales as near as bf16 rounds."""

    def __init__(self, tables: CodecTables) -> None:
        self._tables = tables
        self._shifts = torch.arange(0, 8, tables.bits, dtype=torch.uint8, device=tables.codes.device)

    @torch.no_grad()
    def encode(
        self, x: Sum, second_moment: Tensor, codes: Tensor, scales: Tensor, remainder: Tensor | None
    ) -> None:
        """Write the codes and scales of flat numbers, and what these lack of them."""
        values = x.values * x.unscale
        if x.residual is not None:
            values = values + x.residual
        self._encode(values.view(-1, BLOCK) / _scaling(second_moment), codes, scales)
        if remainder is not None:
            torch.sub(values, self._decoded(codes, scales, second_moment), out=remainder)

    @torch.no_grad()
    def decode(self, codes: Tensor, scales: Tensor, second_moment: Tensor, out: Tensor, *, add: bool) -> None:
        """Write the numbers that codes and scales stand for, or add them to what is there."""
        decoded = self._decoded(codes, scales, second_moment)
        if add:
            out.add_(decoded)
        else:
            out.copy_(decoded)

    def _encode(self, scaled_NB: Tensor, codes: Tensor, scales: Tensor) -> None:
        rotation, levels = self._tables.rotation, self._tables.levels
        largest_N1 = scaled_NB.abs().amax(1, keepdim=True).clamp(min=SMALLEST)
        whole_NB = (scaled_NB * (largest_N1.reciprocal() * GRID)).round()
        # Numbers that are rotated have the norm that they had before as their standard deviation.
        deviation_N1 = _norm(whole_NB).clamp(min=1)
        bins_NB = whole_NB @ rotation * (deviation_N1.reciprocal() * BINS_A_DEVIATION) + BINS // 2
        codes_NB = self._tables.codes[bins_NB.nan_to_num().int().clamp(0, BINS - 1)]
        codes.copy_(self._packed(codes_NB).flatten())
        levels_NB = levels[codes_NB.int()]
        along_N1 = (levels_NB @ rotation.t() * whole_NB).sum(1, keepdim=True)
        # By way of the norm, as a faster codec gets there.
        fitted_N1 = along_N1 / _norm(levels_NB).square()
        # The matrix is used on both ways: together they multiply by 64.
        scales.copy_((fitted_N1 * largest_N1 * (SCALE_UNITS / GRID / BLOCK)).flatten())

    def _decoded(self, codes: Tensor, scales: Tensor, second_moment: Tensor) -> Tensor:
        codes_NB = self._unpacked(codes.view(-1, self._tables.block_bytes))
        rotated_NB = self._tables.levels[codes_NB.int()] @ self._tables.rotation.t()
        scales_N1 = scales.view(-1, 1).float() * (1 / SCALE_UNITS)
        return (rotated_NB * scales_N1 * _scaling(second_moment)).flatten()

    def _packed(self, codes_NB: Tensor) -> Tensor:
        shifted_NWP: Tensor = codes_NB.view(-1, self._tables.block_bytes, self._tables.parts) << self._shifts
        return shifted_NWP.sum(2, dtype=torch.uint8)

    def _unpacked(self, codes_NW: Tensor) -> Tensor:
        codes_NWP: Tensor = codes_NW[:, :, None] >> self._shifts & 2**self._tables.bits - 1
        return codes_NWP.view(-1, BLOCK)


def _scaling(second_moment: Tensor) -> Tensor:
    """What each number is divided by: √v plus a tenth of its mean over the block, up to a constant of each block."""
    # Half of its exponent: within 6 % of √v, which serves as well, and without the last bits in which libraries differ.
    root_NB = ((second_moment.view(torch.int32) >> 1) + ROOT_BITS).view(torch.float32).view(-1, BLOCK)
    whole_NB = (root_NB * (root_NB.amax(1, keepdim=True).reciprocal() * ROOT_GRID)).round()
    return whole_NB + whole_NB.sum(1, keepdim=True) * (LEAST_MEAN_SHARE / BLOCK)


def _norm(x_NB: Tensor) -> Tensor:
    # Of whole numbers, it is that which is nearest to the true one. PyTorch's sqrt is not on all processors.
    norm_N1: Tensor = torch.linalg.vector_norm(x_NB, dim=1, keepdim=True)
    return norm_N1
