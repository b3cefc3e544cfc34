"""The likeliest pieces of every row of logits, in one pass over the vocabulary."""

# Shapes: R rows, V vocabulary, C pieces picked of each row.

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["LARGEST_VOCABULARY", "pick_likeliest"]

LARGEST_VOCABULARY = 65536
"""A row must lie in the registers of one program."""


def pick_likeliest(
    logits_RV: Tensor, forced_R: Tensor, *, banned_V: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Log-probabilities (fp32) and ids (int64) of the likeliest pieces [R, C], best first; of equals the first.

    Where `forced_R` is not negative, that id comes first, and minus infinity behind it. What is 1 in `banned_V` (int8)
    is not picked, but counts in the probabilities of others.
    """
    rows, vocabulary = logits_RV.shape
    if vocabulary > LARGEST_VOCABULARY:
        raise ValueError(f"a row of {vocabulary} logits does not fit: {LARGEST_VOCABULARY} do")
    count = min(count, vocabulary)
    scores_RC = torch.empty((rows, count), dtype=torch.float32, device=logits_RV.device)
    ids_RC = torch.empty((rows, count), dtype=torch.int64, device=logits_RV.device)
    block = triton.next_power_of_2(vocabulary)
    _pick[(rows,)](
        logits_RV.contiguous(),
        forced_R.contiguous(),
        banned_V,
        scores_RC,
        ids_RC,
        V=vocabulary,
        C=count,
        BLOCK=block,
        num_warps=min(max(block // 2048, 4), 32),
    )
    return scores_RC, ids_RC


@triton.jit
def _pick(
    logits_ptr,
    forced_ptr,
    banned_ptr,
    scores_ptr,
    ids_ptr,
    V: tl.constexpr,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < V
    logits = tl.load(logits_ptr + row * V + columns, mask=inside, other=float("-inf")).to(tl.float32)
    highest = tl.max(logits, 0)
    log_sum = highest + tl.log(tl.sum(tl.exp(logits - highest), 0))
    forced = tl.load(forced_ptr + row)
    if forced >= 0:
        at_forced = tl.load(logits_ptr + row * V + forced).to(tl.float32)
        for place in range(C):
            score = tl.where(place == 0, at_forced - log_sum, float("-inf"))
            tl.store(scores_ptr + row * C + place, score)
            tl.store(ids_ptr + row * C + place, forced)
    else:
        banned = tl.load(banned_ptr + columns, mask=inside, other=1)
        logits = tl.where(banned != 0, float("-inf"), logits)
        for place in range(C):
            best, at = tl.max(logits, 0, return_indices=True, return_indices_tie_break_left=True)
            tl.store(scores_ptr + row * C + place, best - log_sum)
            # More may be asked for than there is.
            tl.store(ids_ptr + row * C + place, tl.minimum(at, V - 1).to(tl.int64))
            logits = tl.where(columns == at, float("-inf"), logits)
