"""Calls are timed on any device, and what a graph cannot hold is timed as it is."""

import pytest
import torch
from benchmarks.gpu.stopwatch import Stopwatch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_a_call_is_timed_warm_and_says_how() -> None:
    stopwatch = Stopwatch(DEVICE, repetitions=3)
    calls = []
    with stopwatch.stream():
        x = torch.rand(64, 64, device=DEVICE)
        timed = stopwatch.time(lambda: calls.append(x @ x))
    assert timed.us > 0
    assert timed.how == ("graph" if DEVICE.type == "cuda" else "cpu")
    assert timed.why_eager is None
    assert len(calls) > 1


def test_a_copy_has_a_speed() -> None:
    stopwatch = Stopwatch(DEVICE, repetitions=3)
    with stopwatch.stream():
        assert 1e8 < stopwatch.copy_bytes_per_s() < 1e14


@pytest.mark.gpu
def test_what_waits_for_the_device_is_timed_without_a_graph() -> None:
    if DEVICE.type != "cuda":
        pytest.skip("no GPU")
    stopwatch = Stopwatch(DEVICE, repetitions=3)
    with stopwatch.stream():
        ones = torch.ones(8, device=DEVICE)
        timed = stopwatch.time(lambda: ones.sum().item())
        assert timed.how == "eager"
        assert timed.why_eager
        # And the next one is none the worse for it.
        assert stopwatch.time(lambda: ones + 1).how == "graph"


@pytest.mark.gpu
def test_a_backward_pass_alone_fits_in_a_graph() -> None:
    if DEVICE.type != "cuda":
        pytest.skip("no GPU")
    stopwatch = Stopwatch(DEVICE, repetitions=3)
    with stopwatch.stream():
        x = torch.rand(64, 64, device=DEVICE, requires_grad=True)
        found = (x @ x).relu().sum()
        timed = stopwatch.time(lambda: torch.autograd.grad(found, [x], retain_graph=True))
    assert timed.how == "graph", timed.why_eager
