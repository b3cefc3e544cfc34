"""Output projection and smoothed cross-entropy with both gradients: ours, PyTorch's, and its compiled one."""

from collections.abc import Callable
from functools import partial

import torch
from benchmarks.gpu.contest import OURS, Contender, Contest, Ready
from benchmarks.gpu.setting import SPECIAL, Setting
from torch import Tensor
from torch.nn import functional

from tandem.kernels.cross_entropy import cross_entropy_
from tandem.train.fused_loss import fused_loss
from tandem.train.loss import summed_loss

__all__ = ["LOSS", "build_loss"]

LOSS = ("projection and loss", "cross-entropy of logits")
"""The contests."""

_SMOOTHING = 0.1


def build_loss(setting: Setting, kernel: str) -> Contest:
    """Return the contest of that name, with numbers of its own."""
    contests = dict(zip(LOSS, (_projected, _logits), strict=True))
    return contests[kernel](setting)


def _projected(setting: Setting) -> Contest:
    width, labels = setting.model.width, setting.row.labels
    states = setting.draw(setting.places, width).requires_grad_()
    weight = (setting.draw(setting.vocabulary, width) * width**-0.5).requires_grad_()
    classes = labels.long()

    def plain(states: Tensor, weight: Tensor) -> Tensor:
        return functional.cross_entropy(
            (states @ weight.T).float(),
            classes,
            ignore_index=SPECIAL.pad,
            label_smoothing=_SMOOTHING,
            reduction="sum",
        )

    def in_pieces(states: Tensor, weight: Tensor) -> Tensor:
        return summed_loss(states, weight, labels, pad=SPECIAL.pad, smoothing=_SMOOTHING)[0]

    compiled = partial(torch.compile, plain, dynamic=False)
    return Contest(
        kernel=LOSS[0],
        size=setting.size,
        flops={"both": 6.0 * setting.places * width * setting.vocabulary},
        contenders=[
            Contender(name=OURS, prepare=partial(_ours, states, weight, labels)),
            Contender(
                name="tandem.train.loss, in pieces",
                prepare=partial(_torchs, states, weight, lambda: in_pieces),
            ),
            Contender(name="eager, fp32 logits", prepare=partial(_torchs, states, weight, lambda: plain)),
            Contender(
                name="compiled, fp32 logits",
                prepare=partial(_torchs, states, weight, compiled),
                is_compiled=True,
            ),
        ],
    )


def _ours(states: Tensor, weight: Tensor, labels: Tensor) -> Ready:
    weight_grad = torch.zeros_like(weight, dtype=torch.float32, requires_grad=False)
    factor = torch.ones((), device=states.device)

    def both() -> tuple[Tensor, Tensor]:
        loss, _, _ = fused_loss(
            states,
            weight,
            labels,
            pad=SPECIAL.pad,
            smoothing=_SMOOTHING,
            factor=factor,
            weight_grad_VD=weight_grad,
        )
        (states_grad,) = torch.autograd.grad(loss, [states])
        return loss.detach(), states_grad

    loss, states_grad = both()
    outcome = {"loss": loss, "grad_states": states_grad, "grad_weight": weight_grad.clone()}
    return Ready(runs={"both": both}, outcome=outcome)


def _torchs(states: Tensor, weight: Tensor, make: Callable[[], Callable[[Tensor, Tensor], Tensor]]) -> Ready:
    loss_of = make()

    def both() -> tuple[Tensor, ...]:
        loss = loss_of(states, weight)
        return loss.detach(), *torch.autograd.grad(loss, [states, weight])

    return Ready(
        runs={"both": both},
        outcome=dict(zip(("loss", "grad_states", "grad_weight"), both(), strict=True)),
    )


def _logits(setting: Setting) -> Contest:
    """What is left of the loss where products are set aside: half of the places, as ours works in pieces."""
    rows = setting.places // 2
    logits, labels = setting.draw(rows, setting.vocabulary), setting.row.labels[:rows]

    def ours() -> Ready:
        factor = torch.ones((), device=logits.device)
        losses, nlls, hits = torch.empty(3, rows, device=logits.device).unbind()

        def run(logits: Tensor) -> None:
            cross_entropy_(
                logits,
                labels,
                pad=SPECIAL.pad,
                smoothing=_SMOOTHING,
                factor=factor,
                losses_B=losses,
                nlls_B=nlls,
                hits_B=hits,
            )

        own = logits.clone()
        run(own)
        outcome = {"loss": losses.sum(), "grad": own.clone()}
        return Ready(runs={"both": lambda: run(own)}, outcome=outcome)

    classes = labels.long()

    def plain(logits: Tensor) -> Tensor:
        return functional.cross_entropy(
            logits.float(), classes, ignore_index=SPECIAL.pad, label_smoothing=_SMOOTHING, reduction="sum"
        )

    def torchs(make: Callable[[], Callable[[Tensor], Tensor]]) -> Ready:
        loss_of, own = make(), logits.detach().requires_grad_()

        def both() -> tuple[Tensor, Tensor]:
            loss = loss_of(own)
            return loss.detach(), torch.autograd.grad(loss, [own])[0]

        return Ready(runs={"both": both}, outcome=dict(zip(("loss", "grad"), both(), strict=True)))

    return Contest(
        kernel=LOSS[1],
        size=setting.size,
        least_bytes={"both": 2 * logits.numel() * logits.element_size()},
        contenders=[
            Contender(name=OURS, prepare=ours),
            Contender(name="eager", prepare=partial(torchs, lambda: plain)),
            Contender(
                name="compiled",
                prepare=partial(torchs, partial(torch.compile, plain, dynamic=False)),
                is_compiled=True,
            ),
        ],
    )
