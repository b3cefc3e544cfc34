"""Cross-entropy over a large vocabulary, in pieces: the logits of a big batch never exist whole."""

# Shapes: X the leading shape of a batch's tokens, N tokens, B tokens of one piece, D width, V vocabulary.

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = ["summed_loss", "summed_nll"]

_PIECE_BYTES = {"cpu": 64 * 2**20, "cuda": 1024 * 2**20}
"""Of a piece's logits in fp32: little enough for a CPU's caches, much enough to keep a GPU busy."""


def summed_loss(
    states_XD: Tensor, weight_VD: Tensor, labels_X: Tensor, *, pad: int, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over all labels but padding: smoothed cross-entropy, and negative log-likelihood without gradient.

    Smoothing is PyTorch's: 1 - s times the likelihood of the label, s times the mean over the vocabulary.
    """
    states_ND = states_XD.reshape(-1, states_XD.shape[-1])
    labels_N = labels_X.reshape(-1).long()
    real_N = labels_N != pad
    if labels_N.is_cuda:
        # To drop rows, the host would have to wait for their number: they are marked instead.
        labels_N = labels_N.where(real_N, -1)
    elif not bool(real_N.all()):
        rows = real_N.nonzero().squeeze(1)
        states_ND, labels_N = states_ND.index_select(0, rows), labels_N.index_select(0, rows)
    loss, nll = _SummedLoss.apply(states_ND, weight_VD, labels_N, smoothing)  # type: ignore[no-untyped-call]
    return loss, nll


def summed_nll(states_XD: Tensor, weight_VD: Tensor, labels_X: Tensor, *, pad: int) -> Tensor:
    """The sum of the negative log-likelihood over all labels but padding, without gradient."""
    return summed_loss(states_XD.detach(), weight_VD.detach(), labels_X, pad=pad, smoothing=0.0)[1]


class _SummedLoss(torch.autograd.Function):
    """Makes the gradients in the forward pass, piece by piece: no logits are kept, none are made twice."""

    @staticmethod
    def forward(
        ctx: Any, states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        device = states_ND.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states_ND.dtype
        with torch.autocast(device, enabled=False):
            sums = _Sums(states_ND, weight_VD, labels_N, dtype=dtype, smoothing=smoothing)
            gradients = sums.first_gradients() if any(ctx.needs_input_grad) else None
            for rows in _cut(len(states_ND), len(weight_VD), device):
                sums.add(rows, gradients)
        ctx.gradients = gradients
        ctx.dtypes = states_ND.dtype, weight_VD.dtype
        ctx.mark_non_differentiable(sums.nll)
        return sums.loss, sums.nll

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("The gradients of this loss were used up by an earlier backward pass.")
        made, ctx.gradients = ctx.gradients, None
        # The loss scale of an fp16 run arrives here: it is applied in fp32, before anything is rounded.
        scaled = (each.mul_(gradient).to(dtype) for each, dtype in zip(made, ctx.dtypes, strict=True))
        return (*scaled, None, None)


def _cut(tokens: int, vocabulary: int, device: str) -> Iterator[slice]:
    most = max(_PIECE_BYTES[device] // (4 * vocabulary), 1)
    # Pieces of even size, as a small last one would use the machine badly.
    count = -(-tokens // most)
    for number in range(count):
        yield slice(tokens * number // count, tokens * (number + 1) // count)


class _Sums:
    """Losses and gradients of the pieces so far: products in `dtype`, sums in fp32 or better."""

    def __init__(
        self, states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, *, dtype: torch.dtype, smoothing: float
    ) -> None:
        self._wide = torch.promote_types(dtype, torch.float32)
        self._real_N1 = labels_N[:, None] >= 0
        self._labels_N1 = labels_N[:, None].clamp_min(0)
        self._states_ND = states_ND.to(dtype) * self._real_N1
        self._weight_VD = weight_VD.to(dtype)
        self._mean_weight_D = weight_VD.mean(0, dtype=self._wide)
        self._smoothing = smoothing
        self.loss = torch.zeros((), dtype=self._wide, device=states_ND.device)
        self.nll = torch.zeros_like(self.loss)

    def first_gradients(self) -> tuple[Tensor, Tensor]:
        """By states and by weights, [N, D] and [V, D], before the first piece."""
        # Smoothing takes s / V from the gradient of every logit. As that is one number, its part of the products is
        # known beforehand, and the gradient of the logits needs no pass for it.
        states_D = self._states_ND.sum(0, dtype=self._wide)
        by_weight_D = states_D * (-self._smoothing / len(self._weight_VD))
        by_states_D = self._mean_weight_D * -self._smoothing
        return by_states_D.repeat(len(self._states_ND), 1), by_weight_D.repeat(len(self._weight_VD), 1)

    def add(self, rows: slice, gradients: tuple[Tensor, Tensor] | None) -> None:
        """One piece more."""
        states_BD, labels_B1, real_B1 = self._states_ND[rows], self._labels_N1[rows], self._real_N1[rows]
        logits_BV = states_BD @ self._weight_VD.T
        chances_BV = torch.softmax(logits_BV, dim=-1, dtype=self._wide)
        # The largest chance is one over the sum that softmax divides by.
        log_sum_B1 = logits_BV.amax(-1, keepdim=True) - chances_BV.amax(-1, keepdim=True).log()
        nll_B1 = log_sum_B1 - logits_BV.gather(1, labels_B1)
        mean_B1 = log_sum_B1 - states_BD.to(self._wide) @ self._mean_weight_D[:, None]
        self.nll += (nll_B1 * real_B1).sum()
        self.loss += (torch.lerp(nll_B1, mean_B1, self._smoothing) * real_B1).sum()
        if gradients is not None:
            chances_BV.scatter_add_(1, labels_B1, torch.full_like(nll_B1, self._smoothing - 1))
            by_states_ND, by_weight_VD = gradients
            by_logits_BV = chances_BV.to(states_BD.dtype)
            _add_product(by_states_ND[rows], by_logits_BV, self._weight_VD)
            _add_product(by_weight_VD, by_logits_BV.T, states_BD)
            by_states_ND[rows] *= real_B1


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
