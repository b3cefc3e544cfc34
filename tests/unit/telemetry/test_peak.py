import math

import pytest
import torch
from torch import Tensor

from tandem.telemetry import peak
from tandem.telemetry.peak import measure_device, name_device

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("precision", "told"), [("fp32", "fp32"), ("bf16", "bf16"), ("fp16", "fp16"), ("fp8", "bf16")]
)
def test_a_cpu_does_so_many_operations_a_second(
    precision: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "_SIDES", {"cpu": (16, 32)})
    measured = measure_device(CPU, precision)
    assert (measured.device, measured.precision) == ("cpu", told)
    assert measured.flops_per_s > 1e6
    assert measured.duration_s > 0


def pretend_products(monkeypatch: pytest.MonkeyPatch, flops_per_s: float) -> list[tuple[int, int]]:
    """Each product takes as long as a device of this speed needs; gives sizes and numbers of products."""
    asked: list[tuple[int, int]] = []

    def lasting(left: Tensor, _right: Tensor, _product: Tensor, *, times: int) -> float:
        asked.append((len(left), times))
        return 2 * len(left) ** 3 * times / flops_per_s

    monkeypatch.setattr(peak, "_time", lasting)
    return asked


@pytest.mark.parametrize("flops_per_s", [2e9, 1e11, 1e12])
def test_measuring_takes_under_half_a_second_however_fast_the_device_is(
    flops_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pretend_products(monkeypatch, flops_per_s)
    assert measure_device(CPU, "fp32").flops_per_s == pytest.approx(flops_per_s)
    assert sum(2 * side**3 * times for side, times in asked) / flops_per_s < 0.5


def test_the_best_size_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {256: 3e12, 512: 5e12, 1024: 2e12}
    monkeypatch.setattr(peak, "_SIDES", {"cpu": tuple(rates)})
    monkeypatch.setattr(
        peak,
        "_time",
        lambda left, _right, _product, *, times: 2 * len(left) ** 3 * times / rates[len(left)],
    )
    assert measure_device(CPU, "fp32").flops_per_s == pytest.approx(5e12)


def test_a_device_that_refuses_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_held: Tensor, times: int) -> float:
        raise torch.OutOfMemoryError("planted")

    monkeypatch.setattr(peak, "_time", refuse)
    assert math.isnan(measure_device(CPU, "fp32").flops_per_s)


def test_measuring_draws_nothing_from_the_common_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "_SIDES", {"cpu": (16,)})
    before = torch.get_rng_state()
    measure_device(CPU, "fp32")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_a_gpu_does_trillions_of_operations_a_second_and_gives_its_memory_back(precision: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    device = torch.device("cuda", 0)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    before = torch.cuda.memory_reserved(device)
    measured = measure_device(device, precision)
    assert measured.device == name_device(device) == torch.cuda.get_device_name(device)
    assert measured.flops_per_s > 1e12
    assert torch.cuda.memory_reserved(device) <= before + 2**26
