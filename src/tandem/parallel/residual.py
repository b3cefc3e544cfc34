"""Error feedback: what encoding took from a gradient is added to the next one."""

import torch
from torch import Tensor

__all__ = ["Residual"]


class Residual:
    """What a rank still owes to the gradients that it encodes, in units without a loss scale.

    Encoding writes into `pending`. Only when the step turns out to be good does that take the place of `current`: a
    skipped step must leave no trace.
    """

    def __init__(self, numbers: int, device: torch.device) -> None:
        self.current = torch.zeros(numbers, dtype=torch.float32, device=device)
        self.pending = torch.zeros_like(self.current)

    def commit(self, skipped: Tensor) -> None:
        """Keep what the step has left, unless `skipped` is 1; on a GPU nothing is waited for."""
        if self.current.is_cuda:
            torch.where(skipped > 0, self.current, self.pending, out=self.current)
        elif not bool(skipped > 0):
            self.current, self.pending = self.pending, self.current

    def is_finite(self) -> bool:
        """Whether its norm is a number, as a gradient's must be for its step not to be skipped."""
        return bool(torch.linalg.vector_norm(self.current).isfinite())

    def reset(self) -> None:
        """Owe nothing any more."""
        self.current.zero_()

    def load(self, values: Tensor) -> None:
        """Go on with these numbers."""
        self.current.copy_(values)
