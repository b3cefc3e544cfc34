from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import SoloWorld, World

CPU = torch.device("cpu")
A_LAYER = 4 * (32 * 32 + 32)
"""Bytes of a layer's gradients."""


class Note:
    def wait(self) -> None:
        """The sum was there at once."""


@dataclass
class TwinWorld:
    """Stands for two ranks with the same gradients: sums double, and what is sent is noted."""

    sent: list[Tensor] = field(default_factory=list)

    @property
    def world(self) -> World:
        world = SoloWorld(device=CPU, size=2)
        twin = self

        class Doubling(SoloWorld):
            def start_sum(self, tensor: Tensor, name: str = "sum") -> Note:  # noqa: ARG002
                tensor.mul_(2)
                twin.sent.append(tensor)
                return Note()

        return Doubling(device=world.device, size=world.size)


def build_layers(count: int = 4, width: int = 32) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(count)))


def build_buckets(
    model: nn.Module, world: World, *, bytes_: int = A_LAYER, slots: int = 2
) -> GradientBuckets:
    return GradientBuckets(list(model.parameters()), world, slots=slots, bucket_bytes=bytes_)


def backward(model: nn.Module, rows: int = 3) -> None:
    inputs = torch.linspace(-1, 1, rows * 32).view(rows, 32)
    model(inputs).square().sum().backward()


def gradients(model: nn.Module) -> list[Tensor]:
    held = [parameter.grad for parameter in model.parameters()]
    return [gradient.clone() for gradient in held if gradient is not None]


def plain_gradients(times: int = 1) -> list[Tensor]:
    model = build_layers()
    for _ in range(times):
        backward(model)
    return gradients(model)


def test_autograd_adds_into_the_buckets() -> None:
    model = build_layers()
    buckets = build_buckets(model, SoloWorld(device=CPU))
    places = [parameter.grad for parameter in model.parameters()]
    for _ in range(2):
        buckets.clear()
        backward(model)
        with buckets.sending():
            backward(model)
        buckets.finish()
        assert all(
            parameter.grad is place for parameter, place in zip(model.parameters(), places, strict=True)
        )
        for held, plain in zip(gradients(model), plain_gradients(times=2), strict=True):
            torch.testing.assert_close(held, plain)


def test_buckets_are_sent_in_order_during_the_last_backward_and_the_slots_at_the_end() -> None:
    twin, model = TwinWorld(), build_layers()
    buckets = build_buckets(model, twin.world)
    assert len(buckets) == 4
    backward(model)
    assert not twin.sent
    with buckets.sending():
        backward(model)
    assert len(twin.sent) == len(buckets) - 1
    buckets.slots.copy_(torch.tensor([1.5, 2.5]))
    buckets.finish()
    assert buckets.slots.tolist() == [3, 5]
    places = [tensor.data_ptr() for tensor in twin.sent]
    assert places == sorted(places)
    for held, plain in zip(gradients(model), plain_gradients(times=2), strict=True):
        torch.testing.assert_close(held, 2 * plain)


def test_all_is_sent_where_backward_never_came() -> None:
    twin, model = TwinWorld(), build_layers()
    buckets = build_buckets(model, twin.world)
    buckets.finish()
    assert len(twin.sent) == len(buckets)
    assert sum(tensor.numel() for tensor in twin.sent) * 4 == buckets.sent_bytes


def test_a_parameter_used_twice_is_ready_once() -> None:
    twin = TwinWorld()
    layer = nn.Linear(32, 32)
    model = nn.Sequential(layer, nn.Linear(32, 32), layer)
    buckets = build_buckets(model, twin.world, bytes_=A_LAYER)
    with buckets.sending():
        backward(model)
    # The shared layer is complete only at the very end, whichever bucket is last.
    assert len(twin.sent) == len(buckets) - 1
    buckets.finish()
    plain = nn.Sequential(layer, model[1], layer)
    held = gradients(model)
    for parameter in model.parameters():
        parameter.grad = None
    backward(plain)
    for mine, reference in zip(held, gradients(plain), strict=True):
        torch.testing.assert_close(mine, 2 * reference)


def test_after_a_restart_sent_buckets_are_kept_and_the_others_computed_again() -> None:
    twin, model = TwinWorld(), build_layers()
    buckets = build_buckets(model, twin.world)

    def fail(_: Tensor) -> None:
        raise torch.OutOfMemoryError("planted")

    handle = model.get_parameter("1.weight").register_hook(fail)  # type: ignore[no-untyped-call]
    buckets.slots.fill_(9)
    with pytest.raises(torch.OutOfMemoryError), buckets.sending():
        backward(model)
    handle.remove()
    already = len(twin.sent)
    assert 0 < already < len(buckets) - 1
    buckets.restart()
    assert buckets.slots.tolist() == [0, 0]
    backward(model)
    with buckets.sending():
        backward(model)
    buckets.finish()
    # Buckets that had left hold one backward, the others the two of the second attempt; one layer is one bucket.
    once, twice = plain_gradients(1), plain_gradients(2)
    for number, held in enumerate(gradients(model)):
        was_sent = number // 2 >= 4 - already
        torch.testing.assert_close(held, 2 * (once if was_sent else twice)[number])
    buckets.clear()
    backward(model)
    for held, plain in zip(gradients(model), once, strict=True):
        torch.testing.assert_close(held, plain)


def test_the_norm_is_that_of_all_gradients_and_leaves_out_slots() -> None:
    model = build_layers()
    buckets = build_buckets(model, SoloWorld(device=CPU))
    backward(model)
    buckets.slots.fill_(1e6)
    plain = torch.cat([gradient.flatten().double() for gradient in plain_gradients()])
    assert float(buckets.norm()) == pytest.approx(float(plain.norm()), rel=1e-6)


def test_the_norm_of_many_small_numbers_is_exact() -> None:
    parameter = nn.Parameter(torch.zeros(4_000_000))
    buckets = GradientBuckets([parameter], SoloWorld(device=CPU), slots=1)
    assert parameter.grad is not None
    parameter.grad.fill_(0.1)
    assert float(buckets.norm()) == pytest.approx(200.0, rel=1e-5)


@pytest.mark.parametrize(("count", "buckets"), [(1, 1), (40, 8)])
def test_a_small_model_is_cut_so_that_sums_and_backward_overlap(count: int, buckets: int) -> None:
    parameters = [nn.Parameter(torch.zeros(64 * 1024)) for _ in range(count)]
    assert len(GradientBuckets(parameters, SoloWorld(device=CPU), slots=1)) == buckets


def test_a_large_gradient_has_a_bucket_to_itself() -> None:
    parameters = [nn.Parameter(torch.zeros(count)) for count in (10, 100_000, 10, 10)]
    buckets = GradientBuckets(parameters, SoloWorld(device=CPU), slots=1, bucket_bytes=4096)
    assert len(buckets) == 3
