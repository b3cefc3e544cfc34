"""The gradients' codec on a GPU."""

import torch
from torch import Tensor

from tandem.kernels.codec import CodecConstants, decode_blocks, encode_blocks
from tandem.parallel.codec_plain import (
    GRID,
    LEAST_MEAN_SHARE,
    ROOT_BITS,
    ROOT_GRID,
    SCALE_UNITS,
    SMALLEST,
)
from tandem.parallel.codec_tables import BINS_A_DEVIATION, BLOCK, CodecTables, Sum

__all__ = ["TritonCodec", "codec_constants"]


def codec_constants(tables: CodecTables) -> CodecConstants:
    """The definition, as kernels want it."""
    return CodecConstants(
        bits=tables.bits,
        rotation=tables.rotation.half(),
        codes=tables.codes,
        levels=tables.levels.half(),
        bins_a_deviation=BINS_A_DEVIATION,
        root_grid=ROOT_GRID,
        root_bits=ROOT_BITS,
        least_mean_share=LEAST_MEAN_SHARE,
        grid=GRID,
        scale_units=SCALE_UNITS,
        smallest=SMALLEST,
    )


class TritonCodec:
    """In one pass over memory each way, without waiting for the device: it may be captured in a graph."""

    def __init__(self, tables: CodecTables) -> None:
        self._constants = codec_constants(tables)

    def works(self) -> bool:
        """Try a block: Triton may lack a compiler here, or not know this GPU."""
        device = self._constants.codes.device
        zeros, one = torch.zeros(BLOCK, device=device), torch.ones((), device=device)
        codes = torch.zeros(BLOCK * self._constants.bits // 8, dtype=torch.uint8, device=device)
        scales = torch.zeros(1, dtype=torch.bfloat16, device=device)
        x = Sum(values=zeros, residual=zeros, unscale=one)
        try:
            self.encode(x, zeros, codes, scales, torch.empty_like(zeros))
            self.decode(codes, scales, zeros, torch.empty_like(zeros), add=True)
        except Exception:  # noqa: BLE001  (compilers fail in many ways, and PyTorch's own does as well)
            return False
        return True

    def encode(
        self, x: Sum, second_moment: Tensor, codes: Tensor, scales: Tensor, remainder: Tensor | None
    ) -> None:
        """Write the codes and scales of flat numbers, and what these lack of them."""
        encode_blocks(
            x.values,
            second_moment,
            codes,
            scales,
            constants=self._constants,
            residual=x.residual,
            unscale=x.unscale,
            remainder=remainder,
        )

    def decode(self, codes: Tensor, scales: Tensor, second_moment: Tensor, out: Tensor, *, add: bool) -> None:
        """Write the numbers that codes and scales stand for, or add them to what is there."""
        decode_blocks(codes, scales, second_moment, out, constants=self._constants, add=add)
