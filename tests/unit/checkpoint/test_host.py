"""Copies on the host: what the tensors were, in buffers that are used again."""

import pytest
import torch

from tandem.checkpoint.host import Crossing, copy_to_host


def test_a_copy_is_apart_from_its_source() -> None:
    live = {"a": torch.ones(3, requires_grad=True), "n": torch.tensor(4)}
    copy = copy_to_host(live)
    with torch.no_grad():
        live["a"].zero_()
    assert copy["a"].tolist() == [1.0, 1.0, 1.0]
    assert not copy["a"].requires_grad
    assert copy["n"].item() == 4


def test_buffers_are_used_again_where_shape_and_type_fit() -> None:
    first = copy_to_host({"a": torch.zeros(3), "b": torch.zeros(3), "gone": torch.zeros(1)})
    second = copy_to_host({"a": torch.ones(3), "b": torch.ones(3, dtype=torch.bfloat16)}, first)
    assert second["a"] is first["a"]
    assert second["a"].tolist() == [1.0, 1.0, 1.0]
    assert second["b"].dtype == torch.bfloat16
    assert second.keys() == {"a", "b"}


def test_a_crossing_on_the_host_is_over_at_once() -> None:
    with Crossing() as crossing:
        copy_to_host({"a": torch.zeros(3)})
    assert crossing.wait() >= 0


@pytest.mark.gpu
def test_copies_from_a_gpu_hold_what_was_there_when_they_were_queued() -> None:
    if not torch.cuda.is_available():  # type: ignore[no-untyped-call, unused-ignore]
        pytest.skip("there is no CUDA device")
    live = {"a": torch.full((1 << 24,), 3.0, device="cuda")}
    with Crossing() as crossing:
        copy = copy_to_host(live)
    live["a"].zero_()
    assert crossing.wait() > 0
    assert copy["a"].is_pinned()
    assert bool((copy["a"] == 3.0).all())
