"""Output projection and smoothed cross-entropy, forward and backward in one go, in chunks of rows that share memory."""

# Shapes: N places of a packed batch, B places of one chunk, D width, V vocabulary.

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tandem.kernels.cross_entropy import cross_entropy_
from tandem.model.fused.weights import add_product

__all__ = ["fused_loss"]

_CHUNK_BYTES = {"cpu": 2**20, "cuda": 2**30}
"""Of a chunk's logits. Few large chunks on a GPU, as each one reads and writes the whole gradient of the weight."""
_TILE_ROWS = 128
"""Matrix products are cut into tiles of so many rows."""


def fused_loss(
    states_ND: Tensor,
    weight_VD: Tensor,
    labels_N: Tensor,
    *,
    pad: int,
    smoothing: float,
    factor: Tensor,
    weight_grad_VD: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over all labels but padding, fp32: smoothed loss, negative log-likelihood, labels that came first.

    States and weight are of one type. Gradients are those of the loss times `factor` (fp32, one number on the device).
    The weight's is added to `weight_grad_VD` (fp32) at once; for the states', call backward on the loss itself: what
    arrives there is taken for 1.
    """
    found: tuple[Tensor, Tensor, Tensor] = _FusedLoss.apply(  # type: ignore[no-untyped-call]
        states_ND, weight_VD.detach(), labels_N, pad, smoothing, factor, weight_grad_VD
    )
    return found


class _FusedLoss(torch.autograd.Function):
    """Makes the gradients in the forward pass: the logits of a chunk become theirs and then the next chunk's."""

    @staticmethod
    def forward(
        ctx: Any,
        states_ND: Tensor,
        weight_VD: Tensor,
        labels_N: Tensor,
        *rest: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        pad, smoothing, factor, weight_grad_VD = rest
        rows = _chunk_rows(len(states_ND), len(weight_VD) * states_ND.element_size(), states_ND.device.type)
        logits_BV = states_ND.new_empty(rows, len(weight_VD))
        counts_3N = states_ND.new_empty(3, len(states_ND), dtype=torch.float32)
        states_grad_ND = torch.empty_like(states_ND)
        for chunk in _cut(len(states_ND), rows):
            states_BD = states_ND[chunk]
            by_logits_BV = logits_BV[: len(states_BD)]
            torch.mm(states_BD, weight_VD.T, out=by_logits_BV)
            losses_B, nlls_B, hits_B = counts_3N[:, chunk].unbind()
            cross_entropy_(
                by_logits_BV,
                labels_N[chunk],
                pad=pad,
                smoothing=smoothing,
                factor=factor,
                losses_B=losses_B,
                nlls_B=nlls_B,
                hits_B=hits_B,
            )
            torch.mm(by_logits_BV, weight_VD, out=states_grad_ND[chunk])
            add_product(weight_grad_VD, by_logits_BV.T, states_BD)
        ctx.save_for_backward(states_grad_ND)
        loss, nll, hits = counts_3N.sum(1).unbind()
        ctx.mark_non_differentiable(nll, hits)
        return loss, nll, hits

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        (states_grad_ND,) = ctx.saved_tensors
        return (states_grad_ND, *(None,) * 6)


def _chunk_rows(rows: int, row_bytes: int, device: str) -> int:
    """Rows of each chunk but the last: even shares, and whole tiles where that leaves the chunks as they are."""
    most = max(_CHUNK_BYTES[device] // row_bytes, 1)
    share = -(-rows // -(-rows // most))
    whole = -(-share // _TILE_ROWS) * _TILE_ROWS
    return whole if whole <= min(most, rows) else share


def _cut(rows: int, chunk_rows: int) -> Iterator[slice]:
    for start in range(0, rows, chunk_rows):
        yield slice(start, min(start + chunk_rows, rows))
