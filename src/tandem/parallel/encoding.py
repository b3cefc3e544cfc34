"""How gradients become bytes for the network: the face of codecs, and the simplest of them."""

from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Bfloat16Codec", "Codec"]


class Codec(Protocol):
    """Turns numbers into fewer bytes. All tensors are contiguous and lie on one device."""

    def packed_bytes(self, count: int) -> int:
        """Bytes that so many numbers become; they are whole blocks."""
        ...

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
        """Encode values * unscale + residual, and write what the bytes lack of that to `remainder`.

        `second_moment` is Adam's, of the same numbers. Where a number is not finite, some that are decoded are not.
        """
        ...

    def decode(self, packed: Tensor, second_moment: Tensor, out: Tensor, *, add: bool = False) -> None:
        """Write the numbers that bytes stand for, or add them; the same bits wherever it is done."""
        ...


class Bfloat16Codec:
    """Half of the bytes: every number is rounded to bfloat16."""

    def packed_bytes(self, count: int) -> int:
        """Two for each number."""
        return 2 * count

    def encode(
        self,
        values: Tensor,
        second_moment: Tensor,  # noqa: ARG002  (the interface's)
        out: Tensor,
        remainder: Tensor,
        *,
        residual: Tensor | None = None,
        unscale: float | Tensor = 1.0,
    ) -> None:
        """Round to the nearest."""
        torch.mul(values, unscale, out=remainder)
        if residual is not None:
            remainder.add_(residual)
        halves = out.view(torch.bfloat16)
        halves.copy_(remainder)
        remainder.sub_(halves)

    def decode(
        self,
        packed: Tensor,
        second_moment: Tensor,  # noqa: ARG002  (the interface's)
        out: Tensor,
        *,
        add: bool = False,
    ) -> None:
        """Widen to fp32."""
        halves = packed.view(torch.bfloat16)
        if add:
            out.add_(halves)
        else:
            out.copy_(halves)
