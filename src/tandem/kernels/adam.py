"""Adam over flat buffers in one pass."""

# Shapes: everything is flat; N numbers.

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["ADAM_NUMBERS", "adam_"]

ADAM_NUMBERS = ("learning_rate", "first_correction", "second_correction", "divisor", "skipped")
"""What `adam_` reads from the device in each step, in this order.

The corrections are 1 - beta1**t and sqrt(1 - beta2**t); gradients are divided by the divisor (loss scale times excess
over the clip norm); where skipped is not 0, no weight and no moment changes.
"""

_ADAM_BLOCK = 1024


def adam_(
    weights: Tensor,
    gradients: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    numbers: Tensor,
    betas: tuple[float, float],
    epsilon: float,
    halves: Tensor | None = None,
    directions: Tensor | None = None,
    lengths: Tensor | None = None,
) -> None:
    """Make one step of torch's Adam, in place, on flat contiguous fp32 buffers of the same length.

    `numbers` (fp32, on the device) are ADAM_NUMBERS. The new weights are also written to `halves`.
    Where `lengths` (fp32, one for as many neighbours as there are more weights than lengths) is not 0, weights move
    against `directions` instead, by so many learning rates; their moments are kept as all others are.
    """
    length = weights.numel()
    _adam[(triton.cdiv(length, _ADAM_BLOCK),)](
        weights,
        gradients,
        first,
        second,
        weights if halves is None else halves,
        weights if directions is None else directions,
        weights if lengths is None else lengths,
        numbers,
        length,
        1.0 - betas[0],
        1.0 - betas[1],
        epsilon,
        HAS_HALVES=halves is not None,
        HAS_LENGTHS=lengths is not None,
        NEIGHBOURS=1 if lengths is None else length // lengths.numel(),
        BLOCK=_ADAM_BLOCK,
        num_warps=4,
    )


@triton.jit
def _adam(
    weights_ptr,
    gradients_ptr,
    first_ptr,
    second_ptr,
    halves_ptr,
    directions_ptr,
    lengths_ptr,
    numbers_ptr,
    length,
    first_share,
    second_share,
    epsilon,
    HAS_HALVES: tl.constexpr,
    HAS_LENGTHS: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < length
    gradient = tl.load(gradients_ptr + offsets, mask=inside, other=0.0)
    weight = tl.load(weights_ptr + offsets, mask=inside, other=0.0)
    first = tl.load(first_ptr + offsets, mask=inside, other=0.0)
    second = tl.load(second_ptr + offsets, mask=inside, other=0.0)
    step_size = tl.div_rn(tl.load(numbers_ptr), tl.load(numbers_ptr + 1))
    correction = tl.load(numbers_ptr + 2)
    divisor = tl.load(numbers_ptr + 3)
    # No branch: what is not to be applied is made all the same and not written, so that no load waits for the flag.
    applied = offsets < tl.where(tl.load(numbers_ptr + 4) == 0.0, length, 0)
    gradient = tl.div_rn(gradient, tl.zeros_like(gradient) + divisor)
    first += first_share * (gradient - first)
    second += second_share * (gradient * gradient - second)
    root = tl.div_rn(tl.sqrt_rn(second), tl.zeros_like(second) + correction) + epsilon
    step = tl.div_rn(step_size * first, root)
    if HAS_LENGTHS:
        directed = tl.load(lengths_ptr + offsets // NEIGHBOURS, mask=inside, other=0.0)
        direction = tl.load(directions_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        step = tl.where(directed > 0.0, tl.load(numbers_ptr) * directed * direction, step)
    weight -= step
    tl.store(weights_ptr + offsets, weight, mask=applied)
    tl.store(first_ptr + offsets, first, mask=applied)
    tl.store(second_ptr + offsets, second, mask=applied)
    if HAS_HALVES:
        tl.store(halves_ptr + offsets, weight, mask=applied)
