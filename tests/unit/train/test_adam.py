from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.config import OptimSection
from tandem.train.adam import SAME_LENGTH, Adam, DirectedSteps, _KernelAdam, _TorchAdam, build_adam

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SECTION = OptimSection(beta1=0.9, beta2=0.999, epsilon=1e-9)
NUMBERS = 1504


class Trial:
    """Flat weights that an Adam changes, with the same gradients for the same step."""

    def __init__(self, kind: type[_KernelAdam | _TorchAdam]) -> None:
        self.weights = torch.linspace(-1, 1, NUMBERS, device=DEVICE)
        self.gradients = torch.zeros_like(self.weights)
        self.halves = self.weights.half()
        self.adam: Adam = kind(self.weights, self.gradients, SECTION)

    def step(self, number: int, *, skipped: bool = False, directed: DirectedSteps | None = None) -> None:
        generator = torch.Generator().manual_seed(number)
        self.gradients.copy_(torch.randn(NUMBERS, generator=generator) * 8)
        if skipped:
            self.gradients[7] = torch.nan
        self.adam.step(
            learning_rate=1e-3 / number,
            divisor=torch.tensor(torch.nan if skipped else 8.0, device=DEVICE),
            skipped=torch.tensor(float(skipped), device=DEVICE),
            halves=self.halves,
            directed=directed,
        )

    def state(self) -> list[Tensor]:
        return [self.weights, self.adam.first, self.adam.second, self.adam.steps, self.halves]


def test_the_kernel_makes_the_steps_of_torch_and_both_count_those_that_were_made() -> None:
    trials = Trial(_KernelAdam), Trial(_TorchAdam)
    for trial in trials:
        for number in range(1, 6):
            trial.step(number, skipped=number == 3)
    for mine, reference in zip(trials[0].state(), trials[1].state(), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(
            mine.float(), reference.float(), rtol=1e-5, atol=2e-7 if mine.dtype != torch.half else 1e-3
        )
    assert float(trials[0].adam.steps) == 4


def directed_steps(dtype: torch.dtype) -> DirectedSteps:
    """Of all but the first and the last weights, in two lengths."""
    lengths = torch.zeros(NUMBERS // SAME_LENGTH, device=DEVICE)
    lengths[5:40], lengths[40:90] = 2.0, 0.5
    return DirectedSteps(directions=torch.linspace(-2, 2, NUMBERS, device=DEVICE).to(dtype), lengths=lengths)


@pytest.mark.parametrize("kind", [_KernelAdam, _TorchAdam])
def test_weights_with_a_direction_move_against_it_and_keep_moments_like_all(
    kind: type[_KernelAdam | _TorchAdam],
) -> None:
    trial, plain, directed = Trial(kind), Trial(kind), directed_steps(torch.bfloat16)
    before = trial.weights.clone()
    for number in range(1, 4):
        trial.step(number, skipped=number == 2, directed=directed)
        plain.step(number, skipped=number == 2)
    moves = directed.lengths > 0
    is_directed = moves.repeat_interleave(SAME_LENGTH)
    lengths = directed.lengths.repeat_interleave(SAME_LENGTH)
    expected = before - (1e-3 + 1e-3 / 3) * lengths * directed.directions.float()
    torch.testing.assert_close(trial.weights[is_directed], expected[is_directed])
    assert torch.equal(trial.weights[~is_directed], plain.weights[~is_directed])
    assert torch.equal(trial.halves, trial.weights.half())
    assert torch.equal(trial.adam.first, plain.adam.first)
    assert torch.equal(trial.adam.second, plain.adam.second)


@pytest.mark.parametrize("kind", [_KernelAdam, _TorchAdam])
def test_halves_follow_the_weights(kind: type[_KernelAdam | _TorchAdam]) -> None:
    trial = Trial(kind)
    trial.step(1)
    assert torch.equal(trial.halves, trial.weights.half())


def test_a_cpu_takes_torch() -> None:
    weights = torch.zeros(4)
    assert isinstance(build_adam(weights, torch.zeros(4), SECTION), _TorchAdam)


def test_trying_the_kernel_changes_nothing() -> None:
    trial = Trial(_KernelAdam)
    before = [tensor.clone() for tensor in trial.state()]
    trial.gradients.fill_(3.0)
    assert isinstance(trial.adam, _KernelAdam)
    assert trial.adam.works()
    assert all(map(torch.equal, trial.state(), before))


def fail(*_: Any, **__: Any) -> None:
    raise RuntimeError("no C compiler")


def test_a_kernel_that_cannot_be_compiled_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(_KernelAdam)
    monkeypatch.setattr("tandem.kernels.adam.adam_", fail)
    assert isinstance(trial.adam, _KernelAdam)
    assert not trial.adam.works()


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_a_gpu_takes_torch_where_the_kernel_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.zeros(4, device=DEVICE)
    assert isinstance(build_adam(weights, torch.zeros_like(weights), SECTION), _KernelAdam)
    monkeypatch.setattr("tandem.kernels.adam.adam_", fail)
    assert isinstance(build_adam(weights, torch.zeros_like(weights), SECTION), _TorchAdam)
