"""AdamW over flat buffers in one pass, and the sum of squares that clipping needs."""

# Shapes: everything is flat; N numbers.

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["ADAM_NUMBERS", "adam_", "squares_sum"]

ADAM_NUMBERS = ("learning_rate", "first_correction", "second_correction", "divisor", "skipped")
"""What `adam_` reads from the device in each step, in this order.

The corrections are 1 - beta1**t and sqrt(1 - beta2**t); gradients are divided by the divisor (loss scale times excess
over the clip norm); where skipped is not 0, no weight and no moment changes.
"""

_ADAM_BLOCK = 1024
_SQUARES_BLOCK = 4096
_MOST_PARTIAL_SUMS = 4096
"""Enough for every processor to have several, few enough for one to add them up."""


def adam_(
    weights: Tensor,
    gradients: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    numbers: Tensor,
    betas: tuple[float, float],
    epsilon: float,
    decay: float,
    decayed: int,
    halves: Tensor | None = None,
    clear: bool = False,
) -> None:
    """Make one step of torch's AdamW, in place, on flat contiguous fp32 buffers of the same length.

    `numbers` (fp32, on the device) are ADAM_NUMBERS; `decay` is for the first `decayed` weights. The new weights are
    also written to `halves`. With `clear`, gradients become 0, those of a skipped step too.
    """
    length = weights.numel()
    _adam[(triton.cdiv(length, _ADAM_BLOCK),)](
        weights,
        gradients,
        first,
        second,
        weights if halves is None else halves,
        numbers,
        length,
        decayed,
        1.0 - betas[0],
        1.0 - betas[1],
        epsilon,
        decay,
        HAS_HALVES=halves is not None,
        CLEAR=clear,
        BLOCK=_ADAM_BLOCK,
        num_warps=4,
    )


def squares_sum(flat: Tensor) -> Tensor:
    """The sum of the squares of a flat contiguous fp32 buffer, as a number on the device; the same bits each time."""
    blocks = triton.cdiv(flat.numel(), _SQUARES_BLOCK)
    rounds = triton.cdiv(blocks, _MOST_PARTIAL_SUMS)
    partial = torch.empty(triton.cdiv(blocks, rounds), dtype=torch.float32, device=flat.device)
    _squares[(len(partial),)](flat, partial, flat.numel(), rounds, BLOCK=_SQUARES_BLOCK, num_warps=8)
    return partial.sum()


@triton.jit(do_not_specialize=["decayed"])
def _adam(
    weights_ptr,
    gradients_ptr,
    first_ptr,
    second_ptr,
    halves_ptr,
    numbers_ptr,
    length,
    decayed,
    first_share,
    second_share,
    epsilon,
    decay,
    HAS_HALVES: tl.constexpr,
    CLEAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < length
    gradient = tl.load(gradients_ptr + offsets, mask=inside, other=0.0)
    weight = tl.load(weights_ptr + offsets, mask=inside, other=0.0)
    first = tl.load(first_ptr + offsets, mask=inside, other=0.0)
    second = tl.load(second_ptr + offsets, mask=inside, other=0.0)
    learning_rate = tl.load(numbers_ptr)
    step_size = tl.div_rn(learning_rate, tl.load(numbers_ptr + 1))
    correction = tl.load(numbers_ptr + 2)
    divisor = tl.load(numbers_ptr + 3)
    # No branch: what is not to be applied is made all the same and not written, so that no load waits for the flag.
    applied = offsets < tl.where(tl.load(numbers_ptr + 4) == 0.0, length, 0)
    gradient = tl.div_rn(gradient, tl.zeros_like(gradient) + divisor)
    weight -= tl.where(offsets < decayed, learning_rate * decay, 0.0) * weight
    first += first_share * (gradient - first)
    second += second_share * (gradient * gradient - second)
    root = tl.div_rn(tl.sqrt_rn(second), tl.zeros_like(second) + correction) + epsilon
    weight -= tl.div_rn(step_size * first, root)
    tl.store(weights_ptr + offsets, weight, mask=applied)
    tl.store(first_ptr + offsets, first, mask=applied)
    tl.store(second_ptr + offsets, second, mask=applied)
    if HAS_HALVES:
        tl.store(halves_ptr + offsets, weight, mask=applied)
    if CLEAR:
        tl.store(gradients_ptr + offsets, tl.zeros_like(weight), mask=inside)


@triton.jit(do_not_specialize=["rounds"])
def _squares(flat_ptr, partial_ptr, length, rounds, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * rounds * BLOCK
    sums = tl.zeros((BLOCK,), tl.float32)
    for number in range(rounds):
        offsets = start + number * BLOCK + tl.arange(0, BLOCK)
        numbers = tl.load(flat_ptr + offsets, mask=offsets < length, other=0.0)
        sums += numbers * numbers
    tl.store(partial_ptr + tl.program_id(0), tl.sum(sums, 0))
