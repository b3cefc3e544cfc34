"""Label-smoothed cross-entropy over a large vocabulary: logits are read once and become their own gradient."""

# Shapes: B rows (tokens), V vocabulary.

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["LARGEST_VOCABULARY", "cross_entropy_"]

LARGEST_VOCABULARY = 65536
"""A row must lie in the registers of one program."""

_ROW_REGISTERS = 64
"""A thread holds 64 logits as 32 pairs; so many registers leave room for two rows of 32,768 logits on a processor."""

_LOG2_E = tl.constexpr(1.4426950408889634)
_LN_2 = tl.constexpr(0.6931471805599453)


def cross_entropy_(
    logits_BV: Tensor,
    labels_B: Tensor,
    *,
    pad: int,
    smoothing: float,
    factor: Tensor,
    losses_B: Tensor,
    nlls_B: Tensor,
    hits_B: Tensor,
) -> None:
    """Turn logits in place into the gradient of the summed loss times `factor` (fp32, one number on the device).

    Losses are smoothed as PyTorch does it, likelihoods (nll) are not; a hit is 1 where no logit is above the label's.
    All three are fp32. Rows whose label is `pad` become zeros and count 0. All tensors are contiguous.
    """
    rows, vocabulary = logits_BV.shape
    if vocabulary > LARGEST_VOCABULARY:
        raise ValueError(f"a row of {vocabulary} logits does not fit: {LARGEST_VOCABULARY} do")
    block = triton.next_power_of_2(vocabulary)
    _cross_entropy[(rows,)](
        logits_BV,
        labels_B,
        factor,
        losses_B,
        nlls_B,
        hits_B,
        pad,
        smoothing,
        V=vocabulary,
        BLOCK=block,
        IS_COMPILED=logits_BV.is_cuda,
        num_warps=min(max(block // 2048, 4), 32),
        maxnreg=_ROW_REGISTERS,
    )


@triton.jit
def _cross_entropy(
    logits_ptr,
    labels_ptr,
    factor_ptr,
    losses_ptr,
    nlls_ptr,
    hits_ptr,
    pad,
    smoothing,
    V: tl.constexpr,
    BLOCK: tl.constexpr,
    IS_COMPILED: tl.constexpr,
):
    # From the last row on: those are the ones that the product before has left in the cache, and so will be the first
    # ones for the product after.
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * V
    columns = tl.arange(0, BLOCK)
    inside = columns < V
    logits = tl.load(row_ptr + columns, mask=inside, other=float("-inf"))
    label = tl.load(labels_ptr + row)
    if label == pad:
        tl.store(row_ptr + columns, tl.zeros_like(logits), mask=inside)
        tl.store(losses_ptr + row, 0.0)
        tl.store(nlls_ptr + row, 0.0)
        tl.store(hits_ptr + row, 0.0)
    else:
        at_label = tl.load(row_ptr + label).to(tl.float32)
        factor = tl.load(factor_ptr)
        highest = tl.max(logits.to(tl.float32), 0)
        # In powers of two, since the hardware has no others: one multiply-add and one exp2 for each logit.
        offset = highest * _LOG2_E
        powers = tl.exp2(_again(logits, IS_COMPILED).to(tl.float32) * _LOG2_E - offset)
        log_sum = offset + tl.log2(tl.sum(powers, 0))
        mean = tl.sum(tl.where(inside, _again(logits, IS_COMPILED).to(tl.float32), 0.0), 0) / V
        spread = smoothing / V
        chances = tl.exp2(_again(logits, IS_COMPILED).to(tl.float32) * _LOG2_E - log_sum)
        tl.store(row_ptr + columns, chances * factor - spread * factor, mask=inside)
        nll = log_sum * _LN_2 - at_label
        tl.store(losses_ptr + row, nll + smoothing * (at_label - mean))
        tl.store(nlls_ptr + row, nll)
        tl.store(hits_ptr + row, tl.where(at_label == highest, 1.0, 0.0))
        # Cheaper than to ask of every column whether it is the label's; the row must be written before.
        tl.debug_barrier()
        chance = tl.exp2(at_label * _LOG2_E - log_sum)
        tl.store(row_ptr + label, (chance - (1.0 - smoothing) - spread) * factor)


@triton.jit
def _again(logits, IS_COMPILED: tl.constexpr):
    """The same numbers, which the compiler takes for others.

    It would otherwise hold a row as fp32 from one pass to the next, in twice the registers, and spill it.
    """
    if IS_COMPILED and logits.dtype.primitive_bitwidth == 16:
        logits = tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=r,r", [logits], dtype=logits.dtype, is_pure=False, pack=2
        )
    return logits
