"""The gradients' codec on a processor: a piece at a time that stays in its cache, in memory that is there already."""

# Shapes: N blocks of a piece, B = 64 numbers of a block, W bytes of its codes.

import threading
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tandem.parallel.codec_plain import (
    GRID,
    LEAST_MEAN_SHARE,
    ROOT_BITS,
    ROOT_GRID,
    SCALE_UNITS,
    SMALLEST,
)
from tandem.parallel.codec_tables import BINS, BINS_A_DEVIATION, BLOCK, CodecTables, Sum

__all__ = ["TiledCodec"]

_PIECE_BLOCKS = 1024
"""What is made of so many blocks fits most second-level caches, and calls into PyTorch take a tenth of the time."""
_SERIAL_BLOCKS = 512
"""As many as PyTorch leaves to one thread: backward needs the others."""
_WHOLE_NUMBERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""As wide as the codes that share a byte, before they do."""


class _Scratch:
    """Memory for a piece, and the views of it that are needed again and again: making one takes as long as a sum."""

    def __init__(self, memory: "_Memory", blocks: int, tables: CodecTables, dtype: torch.dtype) -> None:
        wide, narrow = memory.wide[:, : blocks * BLOCK], memory.narrow[:, :blocks, None]
        self.x_NB, self.scaling_NB, self.whole_NB, self.rotated_NB, self.mixed_NB, self.levels_NB = wide.view(
            6, -1, BLOCK
        )
        self.whole, self.rotated, self.mixed, self.halves = (
            each.chunk(2, 1) for each in (self.whole_NB, self.rotated_NB, self.mixed_NB, self.levels_NB)
        )
        self.largest_N1, self.factor_N1, self.norm_N1 = narrow
        self.root_bits_NB = self.scaling_NB.view(torch.int32)
        # Bins are done with before levels are looked up.
        self.bins = wide[5].view(torch.int32)
        self.codes = memory.codes[: blocks * BLOCK]
        self.joined_NW = self.codes.view(_WHOLE_NUMBERS[tables.parts]).view(-1, tables.block_bytes)
        self.shifted_NW = memory.shifted[: blocks * BLOCK].view(self.joined_NW.dtype).view_as(self.joined_NW)
        self.bytes = memory.bytes[: blocks * tables.block_bytes]
        self.bytes_NW = self.bytes.view(-1, tables.block_bytes)
        self.levels = self.levels_NB.view(-1, tables.parts).view(dtype).squeeze(1)


class _Memory(threading.local):
    """What each thread that encodes or decodes has for itself, made once."""

    def __init__(self) -> None:
        numbers = _PIECE_BLOCKS * BLOCK
        self.wide, self.narrow = torch.empty(6, numbers), torch.empty(3, _PIECE_BLOCKS)
        self.codes, self.shifted = torch.empty((2, numbers), dtype=torch.uint8)
        self.bytes = torch.empty(numbers, dtype=torch.int32)
        self.scratch: dict[int, _Scratch] = {}


class TiledCodec:
    """Does what the plain codec does; each number's bits depend on its block alone, and on no number of threads."""

    def __init__(self, tables: CodecTables) -> None:
        self._tables = tables
        self._memory = _Memory()
        self._levels_of_byte = _levels_of_bytes(tables)
        # Hadamard's matrix is made of four that are half as wide: two products with these, and a sum and a difference,
        # take two thirds of the time.
        self._halves = tuple(each[:, : BLOCK // 2].contiguous() for each in tables.rotation.chunk(2))
        self._halves_back = tuple(each.t().contiguous() for each in self._halves)

    @torch.no_grad()
    def encode(
        self,
        x: Sum,
        second_moment: Tensor,
        codes: Tensor,
        scales: Tensor,
        remainder: Tensor | None,
    ) -> None:
        """Write the codes and scales of flat numbers, and what these lack of them."""
        values_NB, moment_NB = x.values.view(-1, BLOCK), second_moment.view(-1, BLOCK)
        residual_NB = None if x.residual is None else x.residual.view(-1, BLOCK)
        remainder_NB = None if remainder is None else remainder.view(-1, BLOCK)
        codes_NW, scales_N1 = codes.view(-1, self._tables.block_bytes), scales.view(-1, 1)
        for piece, scratch in self._pieces(len(values_NB)):
            residual_piece = None if residual_NB is None else residual_NB[piece]
            x_NB = _sum_up(values_NB[piece], x.unscale, residual_piece, out=scratch.x_NB)
            _find_scaling(moment_NB[piece], scratch)
            self._find_codes(x_NB, codes_NW[piece], scratch)
            self._find_scales(codes_NW[piece], scales_N1[piece], scratch)
            if remainder_NB is not None:
                torch.sub(x_NB, _restored(scales_N1[piece], scratch), out=remainder_NB[piece])

    @torch.no_grad()
    def decode(self, codes: Tensor, scales: Tensor, second_moment: Tensor, out: Tensor, *, add: bool) -> None:
        """Write the numbers that codes and scales stand for, or add them to what is there."""
        moment_NB, out_NB = second_moment.view(-1, BLOCK), out.view(-1, BLOCK)
        codes_NW, scales_N1 = codes.view(-1, self._tables.block_bytes), scales.view(-1, 1)
        for piece, scratch in self._pieces(len(out_NB)):
            _find_scaling(moment_NB[piece], scratch)
            self._rotate_back(codes_NW[piece], scratch)
            if add:
                out_NB[piece].add_(_restored(scales_N1[piece], scratch))
            else:
                _restored(scales_N1[piece], scratch, out=out_NB[piece])

    def _pieces(self, blocks: int) -> Iterator[tuple[slice, _Scratch]]:
        length = _PIECE_BLOCKS if torch.get_num_threads() == 1 else _SERIAL_BLOCKS
        for start in range(0, blocks, length):
            stop = min(start + length, blocks)
            yield slice(start, stop), self._scratch(stop - start)

    def _scratch(self, blocks: int) -> _Scratch:
        memory = self._memory
        if blocks not in memory.scratch:
            memory.scratch[blocks] = _Scratch(memory, blocks, self._tables, self._levels_of_byte.dtype)
        return memory.scratch[blocks]

    def _find_codes(self, x_NB: Tensor, codes_NW: Tensor, scratch: _Scratch) -> None:
        whole_NB, rotated_NB, factor_N1 = scratch.whole_NB, scratch.rotated_NB, scratch.factor_N1
        torch.div(x_NB, scratch.scaling_NB, out=whole_NB)
        torch.abs(whole_NB, out=rotated_NB)
        torch.amax(rotated_NB, 1, keepdim=True, out=scratch.largest_N1)
        torch.reciprocal(scratch.largest_N1.clamp_(min=SMALLEST), out=factor_N1)
        whole_NB.mul_(factor_N1.mul_(GRID)).round_()
        # Sums of whole numbers: exact, whatever the library's order is.
        for half, matrix, out in zip(scratch.whole, self._halves, scratch.mixed, strict=True):
            torch.mm(half, matrix, out=out)
        _mix(scratch.mixed, scratch.rotated)
        torch.linalg.vector_norm(whole_NB, 2, 1, keepdim=True, out=factor_N1)
        factor_N1.clamp_(min=1).reciprocal_().mul_(BINS_A_DEVIATION)
        scratch.bins.copy_(rotated_NB.mul_(factor_N1).add_(BINS // 2).view(-1))
        # As whole numbers, since those that are not finite become any.
        torch.index_select(self._tables.codes, 0, scratch.bins.clamp_(0, BINS - 1), out=scratch.codes)
        _pack(scratch, codes_NW, bits=self._tables.bits)

    def _find_scales(self, codes_NW: Tensor, scales_N1: Tensor, scratch: _Scratch) -> None:
        self._rotate_back(codes_NW, scratch)
        levels_NB, factor_N1, norm_N1 = scratch.levels_NB, scratch.factor_N1, scratch.norm_N1
        torch.linalg.vector_norm(levels_NB, 2, 1, keepdim=True, out=norm_N1)
        torch.mul(scratch.rotated_NB, scratch.whole_NB, out=levels_NB)
        torch.sum(levels_NB, 1, keepdim=True, out=factor_N1)
        factor_N1.div_(norm_N1.mul_(norm_N1)).mul_(scratch.largest_N1).mul_(SCALE_UNITS / GRID / BLOCK)
        scales_N1.copy_(factor_N1)

    def _rotate_back(self, codes_NW: Tensor, scratch: _Scratch) -> None:
        scratch.bytes_NW.copy_(codes_NW)
        torch.index_select(self._levels_of_byte, 0, scratch.bytes, out=scratch.levels)
        _mix(scratch.halves, scratch.mixed)
        for half, matrix, out in zip(scratch.mixed, self._halves_back, scratch.rotated, strict=True):
            torch.mm(half, matrix, out=out)


def _sum_up(values_NB: Tensor, unscale: float | Tensor, residual_NB: Tensor | None, *, out: Tensor) -> Tensor:
    if residual_NB is None and isinstance(unscale, float) and unscale == 1:
        return values_NB
    torch.mul(values_NB, unscale, out=out)
    return out if residual_NB is None else out.add_(residual_NB)


def _find_scaling(moment_NB: Tensor, scratch: _Scratch) -> None:
    root_NB, factor_N1 = scratch.scaling_NB, scratch.factor_N1
    torch.bitwise_right_shift(moment_NB.view(torch.int32), 1, out=scratch.root_bits_NB).add_(ROOT_BITS)
    torch.amax(root_NB, 1, keepdim=True, out=factor_N1)
    root_NB.mul_(factor_N1.reciprocal_().mul_(ROOT_GRID)).round_()
    torch.sum(root_NB, 1, keepdim=True, out=factor_N1)
    root_NB.add_(factor_N1.mul_(LEAST_MEAN_SHARE / BLOCK))


def _restored(scales_N1: Tensor, scratch: _Scratch, *, out: Tensor | None = None) -> Tensor:
    """By the scale as it is sent, so that what remains is what the others lack."""
    scratch.factor_N1.copy_(scales_N1).mul_(1 / SCALE_UNITS)
    rotated_NB = scratch.rotated_NB.mul_(scratch.factor_N1)
    return torch.mul(rotated_NB, scratch.scaling_NB, out=rotated_NB if out is None else out)


def _mix(halves: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    torch.add(halves[0], halves[1], out=out[0])
    torch.sub(halves[0], halves[1], out=out[1])


def _pack(scratch: _Scratch, bytes_NW: Tensor, *, bits: int) -> None:
    """Push the codes that share a byte together: as one whole number, whose lowest byte is then what is wanted."""
    joined_NW, shifted_NW = scratch.joined_NW, scratch.shifted_NW
    # First one code to its neighbour, then two to the next two, then four.
    codes = 1
    while codes * bits < 8:
        torch.bitwise_right_shift(joined_NW, codes * (8 - bits), out=shifted_NW)
        joined_NW.bitwise_or_(shifted_NW)
        codes *= 2
    bytes_NW.copy_(joined_NW)


def _levels_of_bytes(tables: CodecTables) -> Tensor:
    """The levels in each byte; two of them as one number, which is looked up five times as fast."""
    codes = torch.arange(256)[:, None] >> torch.arange(0, 8, tables.bits) & 2**tables.bits - 1
    levels = tables.levels[codes]
    return levels.view(torch.float64 if tables.parts == 2 else torch.float32).squeeze(1)
