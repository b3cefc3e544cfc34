"""Dropout sets its share to zero and keeps the mean."""

import pytest
import torch
from torch import Tensor

from tandem.model.dropout import add_dropped, dropped


@pytest.mark.parametrize("share", [0.1, 0.3, 0.75])
def test_the_share_goes_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(1)
    result = dropped(torch.ones(401, 499), share=share, training=True)
    assert (result == 0).float().mean().item() == pytest.approx(share, abs=0.005)
    assert result.mean().item() == pytest.approx(1.0, abs=0.02)
    assert len(set(result.flatten().tolist())) == 2


def test_places_are_dropped_independently() -> None:
    torch.manual_seed(1)
    gone = dropped(torch.ones(100_000), share=0.5, training=True) == 0
    for distance in (1, 2, 3, 4):
        both = (gone[:-distance] & gone[distance:]).float().mean().item()
        assert both == pytest.approx(0.25, abs=0.01)


def test_the_seed_decides_and_sizes_need_not_fit() -> None:
    def draw(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return dropped(torch.ones(3, 7), share=0.5, training=True)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_gradients_flow_through_what_was_kept() -> None:
    torch.manual_seed(1)
    x, change = torch.zeros(50, requires_grad=True), torch.ones(50, requires_grad=True)
    total = add_dropped(x, change, share=0.4, training=True)
    by_x, by_change = torch.autograd.grad(total.sum(), (x, change))
    assert torch.equal(by_change, total.detach())
    assert torch.equal(by_x, torch.ones(50))
    assert 0 < int((total == 0).sum()) < 50


@pytest.mark.parametrize(("share", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_dropped_outside_training_or_without_a_share(share: float, *, training: bool) -> None:
    x = torch.arange(6.0)
    assert torch.equal(dropped(x, share=share, training=training), x)
    assert torch.equal(add_dropped(x, x, share=share, training=training), 2 * x)


def test_a_residual_in_fp32_takes_a_change_in_bf16() -> None:
    torch.manual_seed(1)
    total = add_dropped(torch.zeros(40), torch.ones(40, dtype=torch.bfloat16), share=0.5, training=True)
    assert total.dtype == torch.float32
    assert set(total.tolist()) == {0.0, 2.0}
