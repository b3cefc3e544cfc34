import pytest
import torch

from tandem.errors import TandemError
from tandem.train.precision import FIRST_SCALE, SKIPPED_LIMIT, Precision, SkipWatch

CPU = torch.device("cpu")
GOOD, BAD = torch.tensor(0.0), torch.tensor(1.0)


def test_auto_is_full_precision_on_a_cpu() -> None:
    assert Precision("auto", CPU).name == "fp32"


def test_tf32_is_refused_where_there_is_none() -> None:
    with pytest.raises(TandemError, match=r"tf32 is of GPUs"):
        Precision("tf32", CPU)


def test_fp8_is_refused_on_a_cpu() -> None:
    with pytest.raises(
        TandemError, match=r"compute capability 8\.9 or more, but this is a CPU: make it fp32"
    ):
        Precision("fp8", CPU)


@pytest.mark.parametrize("capability", [(8, 6), (7, 5)])
def test_fp8_is_refused_on_a_gpu_without_it(
    capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda _: capability)
    has = ".".join(map(str, capability))
    with pytest.raises(TandemError, match=rf"but this one has {has}: make it bf16 or auto"):
        Precision("fp8", torch.device("cuda"))


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_products_are_made_in_the_numbers_asked_for(name: str, dtype: torch.dtype) -> None:
    precision = Precision(name, CPU)  # type: ignore[arg-type]
    with precision.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_only_fp16_has_a_scale(name: str) -> None:
    precision = Precision(name, CPU)  # type: ignore[arg-type]
    precision.update(BAD)
    assert float(precision.scale) == 1
    assert precision.state_tensors() == {}


def test_the_scale_halves_on_overflow_and_doubles_after_enough_good_steps() -> None:
    precision = Precision("fp16", CPU, growth_steps=3)
    scales = []
    for skipped in (BAD, BAD, GOOD, GOOD, GOOD, GOOD, GOOD, BAD, GOOD, GOOD, GOOD):
        precision.update(skipped)
        scales.append(float(precision.scale) / FIRST_SCALE)
    assert scales == [0.5, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.5]


def test_the_scale_goes_on_where_a_checkpoint_left_it() -> None:
    first, second = (Precision("fp16", CPU, growth_steps=3) for _ in range(2))
    for skipped in (BAD, GOOD, GOOD):
        first.update(skipped)
    second.load({name: value.clone() for name, value in first.state_tensors().items()})
    second.update(GOOD)
    assert float(second.scale) == FIRST_SCALE


def test_a_checkpoint_without_a_scale_is_refused() -> None:
    with pytest.raises(TandemError, match=r"has no loss_scale\.value"):
        Precision("fp16", CPU).load({})


def test_a_collapsing_scale_ends_the_run() -> None:
    watch = SkipWatch()
    watch.note(step=1, skipped=True, loss_scale=2.0**-10)
    with pytest.raises(TandemError, match=r"The loss scale fell to 0\.000488281 at step 2"):
        watch.note(step=2, skipped=True, loss_scale=2.0**-11)


def test_too_many_skipped_steps_in_a_row_end_the_run() -> None:
    watch = SkipWatch()
    for step in range(1, 2 * SKIPPED_LIMIT):
        watch.note(step=step, skipped=step != SKIPPED_LIMIT, loss_scale=1.0)
    with pytest.raises(
        TandemError, match=rf"The last {SKIPPED_LIMIT} steps up to step {2 * SKIPPED_LIMIT} were skipped"
    ):
        watch.note(step=2 * SKIPPED_LIMIT, skipped=True, loss_scale=1.0)
