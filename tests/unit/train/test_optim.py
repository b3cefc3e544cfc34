from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tandem.config import OptimSection
from tandem.errors import TandemError
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import SoloWorld
from tandem.train.optim import Applied, Optimizer

RULES: dict[str, Any] = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}


class Trial:
    """A small model, its buckets and its optimiser, given the same gradients for the same step."""

    def __init__(self, **optim: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 3))
        world = SoloWorld(device=torch.device("cpu"))
        self.buckets = GradientBuckets(list(self.model.parameters()), world, slots=1)
        self.optimizer = Optimizer(self.model, OptimSection(**(RULES | optim)), self.buckets)

    def step(self, step: int, *, scale: float = 1.0, planted: float | None = None) -> Applied:
        self.buckets.clear()
        fill_gradients(self.model, step, scale=scale)
        if planted is not None:
            gradient = next(self.model.parameters()).grad
            assert gradient is not None
            gradient[0, 0] = planted
        return self.optimizer.step(step=step, learning_rate=0.01 / step, scale=torch.tensor(scale))

    def weights(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def save(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        held = self.optimizer.state_tensors(), self.optimizer.weights_for_translation()
        state, weights = ({name: value.clone() for name, value in tensors.items()} for tensors in held)
        return state, weights


def fill_gradients(model: nn.Module, step: int, *, scale: float) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        gradient = torch.randn(parameter.shape, generator=generator) * scale
        parameter.grad = gradient if parameter.grad is None else parameter.grad.copy_(gradient)


def reference_weights(steps: int, *, clip_norm: float, weight_decay: float) -> list[Tensor]:
    trial = Trial()
    matrices = [parameter for parameter in trial.model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in trial.model.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9, foreach=False, fused=False)
    for step in range(1, steps + 1):
        fill_gradients(trial.model, step, scale=1.0)
        if clip_norm:
            nn.utils.clip_grad_norm_(trial.model.parameters(), clip_norm)
        for group in adam.param_groups:
            group["lr"] = 0.01 / step
        adam.step()
    return trial.weights()


@pytest.mark.parametrize("scale", [1.0, 1024.0])
@pytest.mark.parametrize(("clip_norm", "weight_decay"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.1), (1000.0, 0.0)])
def test_weights_are_those_of_plain_adamw_on_clipped_true_gradients(
    scale: float, clip_norm: float, weight_decay: float
) -> None:
    trial = Trial(clip_norm=clip_norm, weight_decay=weight_decay)
    for step in range(1, 11):
        trial.step(step, scale=scale)
    expected = reference_weights(10, clip_norm=clip_norm, weight_decay=weight_decay)
    for value, reference in zip(trial.weights(), expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_the_norm_is_that_of_the_true_gradient_before_clipping(scale: float) -> None:
    trial = Trial(clip_norm=0.5)
    applied = trial.step(1, scale=scale)
    plain = Trial()
    fill_gradients(plain.model, 1, scale=1.0)
    expected = nn.utils.get_total_norm([p.grad for p in plain.model.parameters() if p.grad is not None])
    torch.testing.assert_close(applied.norm, expected)
    assert float(applied.skipped) == 0


@pytest.mark.parametrize("planted", [float("nan"), float("inf"), float("-inf")])
def test_a_gradient_that_is_not_finite_changes_nothing(planted: float) -> None:
    trial, undisturbed = Trial(ema_decay=0.0), Trial(ema_decay=0.0)
    trial.step(1)
    before = trial.save()
    assert float(trial.step(2, planted=planted).skipped) == 1
    for held, after in zip(before, trial.save(), strict=True):
        assert all(torch.equal(value, after[name]) for name, value in held.items())
    trial.step(2)
    for step in (1, 2):
        undisturbed.step(step)
    assert all(map(torch.equal, trial.weights(), undisturbed.weights()))


def test_the_average_follows_the_weights() -> None:
    trial = Trial(ema_decay=0.5)
    expected = [value.double() for value in trial.weights()]
    for step in range(1, 21):
        trial.step(step)
        keep = min(0.5, (1 + step) / (10 + step))
        expected = [keep * old + (1 - keep) * new for old, new in zip(expected, trial.weights(), strict=True)]
    averages = trial.optimizer.weights_for_translation().values()
    for value, reference in zip(averages, expected, strict=True):
        torch.testing.assert_close(value.double(), reference, rtol=1e-5, atol=1e-6)


def test_inside_averaged_the_model_has_the_weights_that_translate() -> None:
    trial = Trial(ema_decay=0.9)
    trial.step(1)
    raw, (_, averages) = trial.weights(), trial.save()
    with pytest.raises(ValueError, match="planted"), trial.optimizer.averaged():
        assert all(map(torch.equal, trial.weights(), averages.values()))
        raise ValueError("planted")
    assert all(map(torch.equal, trial.weights(), raw))
    assert all(map(torch.equal, trial.save()[1].values(), averages.values()))


def test_without_an_average_the_weights_themselves_translate() -> None:
    trial = Trial()
    trial.step(1)
    with trial.optimizer.averaged():
        inside = trial.weights()
    assert all(map(torch.equal, inside, trial.optimizer.weights_for_translation().values()))


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_a_loaded_optimiser_goes_on_to_the_bit(ema_decay: float) -> None:
    first, second = Trial(ema_decay=ema_decay), Trial(ema_decay=ema_decay)
    for step in range(1, 4):
        first.step(step)
    state, weights = first.save()
    for step in range(4, 7):
        first.step(step)
    second.optimizer.load(state, weights=weights)
    for step in range(4, 7):
        second.step(step)
    for mine, theirs in zip(first.save(), second.save(), strict=True):
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    assert all(map(torch.equal, first.weights(), second.weights()))


def test_names_in_a_checkpoint_are_those_of_the_parameters() -> None:
    state, weights = Trial(ema_decay=0.9).save()
    names = [name for name, _ in Trial().model.named_parameters()]
    assert list(weights) == names
    moments = [f"{moment}.{name}" for moment in ("first_moment", "second_moment") for name in names]
    assert list(state) == [*moments, *(f"weight.{name}" for name in names), "steps"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: state.pop("second_moment.0.bias"), r"has no second_moment\.0\.bias"),
        (
            lambda state: state.update({"first_moment.0.bias": torch.zeros(9)}),
            r"first_moment\.0\.bias of the checkpoint is \[9\], but the recipe's model wants \[7\]",
        ),
    ],
)
def test_a_state_of_another_model_is_refused(
    change: Callable[[dict[str, Tensor]], object], sentence: str
) -> None:
    state, weights = Trial().save()
    change(state)
    with pytest.raises(TandemError, match=sentence):
        Trial().optimizer.load(state, weights=weights)


def test_half_copies_follow_the_weights_through_steps_and_loads() -> None:
    trial, other = Trial(), Trial()
    halves = trial.optimizer.halves(torch.float16)
    assert trial.optimizer.halves(torch.float16).keys() == halves.keys()
    trial.step(1)
    assert all(torch.equal(half, parameter.half()) for parameter, half in halves.items())
    for step in (1, 2, 3):
        other.step(step)
    state, weights = other.save()
    trial.optimizer.load(state, weights=weights)
    assert all(torch.equal(half, parameter.half()) for parameter, half in halves.items())
    assert all(map(torch.equal, trial.weights(), other.weights()))


def test_half_copies_that_were_dropped_are_left_alone() -> None:
    trial = Trial()
    halves = trial.optimizer.halves(torch.float16)
    before = {parameter: half.clone() for parameter, half in halves.items()}
    trial.optimizer.drop_halves()
    trial.step(1)
    assert all(torch.equal(half, before[parameter]) for parameter, half in halves.items())
    assert not all(torch.equal(half, parameter.half()) for parameter, half in halves.items())
