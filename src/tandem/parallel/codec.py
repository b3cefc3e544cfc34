"""Gradients in few bits: rotated blocks of numbers, scaled by Adam's second moment, with what is lost given back."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor

from tandem.parallel.codec_plain import PlainCodec
from tandem.parallel.codec_tables import BLOCK, CodecTables, Sum, build_tables
from tandem.parallel.codec_tiles import TiledCodec

__all__ = ["BLOCK", "GradientCodec", "Packed"]

_SCALE_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """What travels: views of one buffer."""

    codes: Tensor
    """uint8: with four bits, two numbers a byte."""
    scales: Tensor
    """bf16, one per block; NaN where a number of the block was not finite."""


class _Way(Protocol):
    """How a kind of device does it."""

    def encode(
        self, x: Sum, second_moment: Tensor, codes: Tensor, scales: Tensor, remainder: Tensor | None
    ) -> None: ...

    def decode(
        self, codes: Tensor, scales: Tensor, second_moment: Tensor, out: Tensor, *, add: bool
    ) -> None: ...


class GradientCodec:
    """Encodes flat fp32 regions of whole blocks of 64 numbers, and decodes them.

    It keeps nothing from call to call. Each block is by itself: however a region is cut between blocks, its codes are
    the same. The same bytes give the same bits on every rank: sums that come to the same in any order are all there is.
    A number that is not finite makes all of its block NaN, and no other; an all-zero block is sent exactly.

    Adam's second moment of the same region must be the same in `encode` and in every `decode`.
    """

    def __init__(self, *, bits: int = 4, seed: int, device: torch.device | str) -> None:
        """Of 1, 2, 4 or 8 bits a number; the seed must be that of every rank."""
        device = torch.device(device)
        self._tables = build_tables(bits=bits, seed=seed, device=device)
        self._way = _choose_way(self._tables, device)

    def packed_bytes(self, count: int) -> int:
        """How long the buffer is that so many numbers travel in: a multiple of two, and so must its place be."""
        blocks = _blocks(count)
        return blocks * (self._tables.block_bytes + _SCALE_BYTES)

    def packed(self, buffer: Tensor) -> Packed:
        """The parts of a buffer."""
        blocks = buffer.numel() // (self._tables.block_bytes + _SCALE_BYTES)
        code_bytes = blocks * self._tables.block_bytes
        return Packed(codes=buffer[:code_bytes], scales=buffer[code_bytes:].view(torch.bfloat16))

    def encode(
        self,
        values: Tensor,
        second_moment: Tensor,
        out: Tensor,
        remainder: Tensor | None,
        *,
        residual: Tensor | None = None,
        unscale: float | Tensor = 1.0,
    ) -> None:
        """Write values * unscale + residual to `out`, a buffer of bytes, and what is lost on the way to `remainder`.

        `unscale` may be a tensor of one number, on the device. The remainder may take the place of the values or of the
        residual, and of nothing else.
        """
        self._check(values.numel(), out)
        packed = self.packed(out)
        x = Sum(values=values, residual=residual, unscale=unscale)
        self._way.encode(x, second_moment, packed.codes, packed.scales, remainder)

    def decode(self, packed: Tensor, second_moment: Tensor, out: Tensor, *, add: bool = False) -> None:
        """Write what a buffer of bytes stands for to `out`, or add it."""
        self._check(out.numel(), packed)
        parts = self.packed(packed)
        self._way.decode(parts.codes, parts.scales, second_moment, out, add=add)

    def _check(self, count: int, buffer: Tensor) -> None:
        expected = self.packed_bytes(count)
        if buffer.numel() != expected:
            raise ValueError(f"{count} numbers travel in {expected} bytes, not in {buffer.numel()}")


def _blocks(count: int) -> int:
    blocks, rest = divmod(count, BLOCK)
    if rest:
        raise ValueError(f"{count} numbers are no whole blocks of {BLOCK}")
    return blocks


def _choose_way(tables: CodecTables, device: torch.device) -> _Way:
    if device.type == "cpu":
        return TiledCodec(tables)
    if device.type == "cuda" and find_spec("triton") is not None:
        # Only now: where there is no GPU, there may be no Triton.
        from tandem.parallel.codec_triton import TritonCodec  # noqa: PLC0415

        codec = TritonCodec(tables)
        if codec.works():
            return codec
    return PlainCodec(tables)
