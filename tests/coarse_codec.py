"""A codec that rounds coarsely, and is plain enough to be seen to be right."""

import torch
from torch import Tensor

__all__ = ["CoarseCodec"]

BLOCK = 64
SCALE_BYTES = 4


class CoarseCodec:
    """One byte a number: a whole part of its block's largest."""

    def packed_bytes(self, count: int) -> int:
        return count + count // BLOCK * SCALE_BYTES

    def encode(
        self,
        values: Tensor,
        second_moment: Tensor,
        out: Tensor,
        remainder: Tensor,
        *,
        residual: Tensor | None = None,
        unscale: float | Tensor = 1.0,
    ) -> None:
        x = values * unscale + (0.0 if residual is None else residual)
        scales = x.view(-1, BLOCK).abs().amax(1) / 127
        codes = (x.view(-1, BLOCK) / scales[:, None].clamp(min=1e-30)).round().nan_to_num().clamp(-127, 127)
        out[: len(x)] = codes.to(torch.int8).view(torch.uint8).flatten()
        out[len(x) :] = scales.view(torch.uint8)
        decoded = torch.empty_like(x)
        self.decode(out, second_moment, decoded)
        torch.sub(x, decoded, out=remainder)

    def decode(self, packed: Tensor, second_moment: Tensor, out: Tensor, *, add: bool = False) -> None:  # noqa: ARG002
        codes = packed[: len(out)].view(torch.int8).view(-1, BLOCK)
        scales = packed[len(out) :].clone().view(torch.float32)
        values = (codes * scales[:, None]).flatten()
        if add:
            out += values
        else:
            out.copy_(values)
