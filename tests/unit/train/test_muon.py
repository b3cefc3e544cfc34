"""Muon's steps: orthogonal, of Adam's size, for matrices alone, and the same after a resume."""

from typing import Any

import pytest
import torch
from tests.learning import Learner, build_learner, train, weights
from torch import Tensor

from tandem.model.build import matrices_of
from tandem.parallel.world import SoloWorld
from tandem.train.muon import orthogonalize_

WORLD = SoloWorld(device=torch.device("cpu"))
RATE = 3e-3


def muon(**optim: Any) -> Learner:
    return build_learner(
        WORLD, optim={"algorithm": "muon", "warmup_steps": 0, "schedule": "constant"} | optim
    )


def random_matrices(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("shape", [(3, 16, 48), (3, 48, 16), (2, 32, 32)])
def test_directions_keep_their_singular_vectors_and_count_alike(shape: tuple[int, int, int]) -> None:
    matrices = random_matrices(*shape)
    left, sizes, right = torch.linalg.svd(matrices.double(), full_matrices=False)
    made = orthogonalize_(matrices.clone()).double()
    along = left.mT @ made @ right.mT
    torch.testing.assert_close(
        along, torch.diag_embed(torch.diagonal(along, dim1=1, dim2=2)), atol=1e-4, rtol=0
    )
    # Five iterations bring up to about one what is a hundredth of the largest.
    counted = torch.diagonal(along, dim1=1, dim2=2)[sizes > sizes.max() / 100]
    assert counted.min() > 0.6
    assert counted.max() < 1.25


def test_only_the_proportions_of_a_matrix_count() -> None:
    matrices = random_matrices(1, 16, 32)
    torch.testing.assert_close(
        orthogonalize_(matrices * 1e-3), orthogonalize_(matrices.clone()), atol=1e-3, rtol=0
    )


def test_a_matrix_without_gradient_stays_where_it_is() -> None:
    assert not orthogonalize_(torch.zeros(1, 4, 8)).any()


def test_each_map_moves_on_its_own_by_what_adam_usually_moves_and_the_rest_is_adams() -> None:
    learner, plain = muon(), muon(algorithm="adamw")
    matrices = {
        name: matrices_of(learner.model).get(value) for name, value in learner.model.named_parameters()
    }
    before = weights(learner)
    train(learner, WORLD, range(1, 2))
    train(plain, WORLD, range(1, 2))
    adams = weights(plain)
    for name, after in weights(learner).items():
        parts = matrices[name]
        if parts is None:
            assert torch.equal(after, adams[name]), name
            continue
        for moved in (before[name] - after).chunk(parts):
            sizes = torch.linalg.svdvals(moved / (RATE * 0.2 * max(moved.shape) ** 0.5))
            assert sizes.max() < 1.25
            assert sizes.median() > 0.6
    held = {name for name, parts in matrices.items() if parts}
    assert held == {name for name, value in before.items() if value.ndim > 1 and "embedding" not in name}
    assert matrices["decoder.0.cross_attention.key_value.weight"] == 2
    assert matrices["encoder.0.attention.query_key_value.weight"] == 3


def test_a_step_that_is_skipped_moves_nothing() -> None:
    learner = muon()
    train(learner, WORLD, range(1, 3))
    before = weights(learner)
    learner.buckets.clear()
    learner.buckets.gradients[5] = torch.nan
    applied = learner.optimizer.step(step=3, learning_rate=RATE, scale=torch.tensor(1.0))
    assert float(applied.skipped) == 1
    assert all(torch.equal(value, before[name]) for name, value in weights(learner).items())


def test_a_resumed_run_makes_the_same_steps_to_the_bit() -> None:
    whole, first, second = muon(ema_decay=0.9), muon(ema_decay=0.9), muon(ema_decay=0.9)
    train(whole, WORLD, range(1, 9))
    train(first, WORLD, range(1, 5))
    second.optimizer.load(first.optimizer.state_tensors(), weights=first.optimizer.weights_for_translation())
    train(second, WORLD, range(5, 9))
    assert all(torch.equal(value, weights(whole)[name]) for name, value in weights(second).items())


def test_without_memory_of_gradients_the_newest_one_says_where_to_go() -> None:
    learner = muon(beta1=0.0)
    losses = [numbers.nll_sum for numbers in train(learner, WORLD, range(1, 31))]
    assert sum(losses[-5:]) < sum(losses[:5])
