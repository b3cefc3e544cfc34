"""What a gradient's codec knows beforehand: the rotation of a block, its levels, and how codes lie in bytes."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["BINS", "BINS_A_DEVIATION", "BLOCK", "CodecTables", "Sum", "build_tables"]

BLOCK = 64
"""Numbers that share a scale."""
BINS = 1024
"""Parts into which rotated numbers are sorted; each part has one code."""
BINS_A_DEVIATION = BINS / 8.5
"""Parts on each standard deviation of a block."""

# Lloyd and Max's levels for a Gaussian, in 128ths of its standard deviation. As whole numbers, sums of them are exact
# in fp32 in whatever order they are made: each kind of device finds the same.
_POSITIVE_LEVELS = {
    1: (1,),
    2: (58, 193),
    4: (16, 50, 84, 121, 161, 207, 265, 350),
    8: tuple(range(1, 256, 2)),
}
_DEVIATION = {1: 1 / math.sqrt(2 / math.pi), 2: 128.0, 4: 128.0, 8: 512 / 8.5}
"""What the standard deviation is in units of the levels."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodecTables:
    """Constants of a codec, on its device. A byte holds the codes of `parts` neighbours, the first lowest."""

    bits: int
    rotation: Tensor
    """64 × 64, of 1 and -1: random signs, then Hadamard's matrix."""
    codes: Tensor
    """uint8: the code of each bin."""
    levels: Tensor
    """fp32, whole numbers: the level of each code."""

    @property
    def parts(self) -> int:
        """Numbers in a byte."""
        return 8 // self.bits

    @property
    def block_bytes(self) -> int:
        """Bytes of a block's codes."""
        return BLOCK // self.parts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """Flat numbers to be sent: values * unscale + residual."""

    values: Tensor
    residual: Tensor | None
    unscale: float | Tensor


def build_tables(*, bits: int, seed: int, device: torch.device) -> CodecTables:
    """Make the same tables on every rank."""
    if bits not in _POSITIVE_LEVELS:
        raise ValueError(
            f"a gradient can be sent in {_listed(_POSITIVE_LEVELS)} bits a number, not in {bits}"
        )
    positive = _POSITIVE_LEVELS[bits]
    levels = torch.tensor([*(-each for each in reversed(positive)), *positive], dtype=torch.float32)
    # Python's own generator is the same everywhere and in every version.
    drawn = random.Random(seed).getrandbits(BLOCK)  # noqa: S311  (no secret)
    signs = torch.tensor([1.0 if drawn >> place & 1 else -1.0 for place in range(BLOCK)])
    return CodecTables(
        bits=bits,
        rotation=(signs[:, None] * _hadamard()).to(device),
        codes=_codes_of_bins(levels / _DEVIATION[bits]).to(device),
        levels=levels.to(device),
    )


def _codes_of_bins(levels: Tensor) -> Tensor:
    """The level nearest to the middle of each bin."""
    middles = (torch.arange(BINS) - BINS // 2 + 0.5) / BINS_A_DEVIATION
    borders = (levels[1:] + levels[:-1]) / 2
    return torch.bucketize(middles, borders).to(torch.uint8)


def _hadamard() -> Tensor:
    matrix = torch.ones(1, 1)
    while len(matrix) < BLOCK:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def _listed(numbers: Sequence[int] | dict[int, tuple[int, ...]]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}"
