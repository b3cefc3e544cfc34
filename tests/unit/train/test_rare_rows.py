"""Rows of rare pieces in a packed exchange: weights whose second moments are next to nothing must not run away."""

import pytest
import torch
from torch import Tensor

from tandem.config import OptimSection
from tandem.parallel.codec import GradientCodec
from tandem.parallel.residual import Residual
from tandem.train.adam import build_adam

HOSTS, STEPS, EXACT_STEPS, RATE = 2, 3000, 50, 1e-3
SHARES = torch.tensor([1.0, 0.0, 1e-2, 1e-4, 1.0, 0.0, 0.0, 1e-4] * 3)
"""Of the steps in which each row is seen."""
CPU = torch.device("cpu")


def learn(width: int, first_moments: Tensor, *, is_packed: bool) -> tuple[Tensor, Tensor]:
    """The weights of all rows after their steps, and the longest step of each row."""
    generator = torch.Generator().manual_seed(width)
    weights, gradients = torch.zeros(2, len(SHARES) * width)
    adam = build_adam(weights, gradients, OptimSection(beta2=0.98))
    adam.second.copy_(first_moments.repeat_interleave(width))
    codec = GradientCodec(seed=5, device=CPU)
    residuals = [Residual(len(weights), CPU) for _ in range(HOSTS)]
    packed = torch.empty(codec.packed_bytes(len(weights)), dtype=torch.uint8)
    longest, good = torch.zeros(len(SHARES)), torch.zeros(())
    for step in range(1, STEPS + 1):
        gradients.zero_()
        for residual in residuals:
            is_seen = torch.rand(len(SHARES), 1, generator=generator) < SHARES[:, None]
            # Three times in all, the rare rows are seen for certain.
            is_seen |= (SHARES[:, None] == 1e-4) & (step % 1000 == 500)
            values = (0.1 * torch.randn(len(SHARES), width, generator=generator) * is_seen).flatten()
            if not is_packed or step <= EXACT_STEPS:
                gradients += values
                continue
            codec.encode(values, adam.second, packed, residual.pending, residual=residual.current)
            codec.decode(packed, adam.second, gradients, add=True)
            residual.commit(good)
        before = weights.clone()
        adam.step(learning_rate=RATE, divisor=torch.ones(()), skipped=good, halves=None)
        longest = longest.maximum((weights - before).view(-1, width).abs().amax(1))
    return weights.view(-1, width), longest


@pytest.mark.parametrize("width", [64, 24], ids=["a row is a block", "blocks hold parts of rows"])
def test_rows_that_are_seen_once_in_ten_thousand_steps_move_as_in_an_exact_exchange(width: int) -> None:
    order = torch.randperm(len(SHARES), generator=torch.Generator().manual_seed(1))
    moments = 10 ** torch.linspace(-30, -2, len(SHARES))[order]
    (exact, _), (packed, longest) = (learn(width, moments, is_packed=each) for each in (False, True))
    assert longest.max() < 1.5 * RATE
    for share, most in ((1.0, 0.03), (1e-2, 0.15), (1e-4, 0.5)):
        rows = share == SHARES
        assert (packed - exact)[rows].norm() < most * exact[rows].norm()
    # What a block's other rows leave in one that is never seen is given back: it does not add up.
    assert packed[SHARES == 0].abs().max() < 4 * RATE
