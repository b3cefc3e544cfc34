import pytest
import torch

from tandem.errors import TandemError
from tandem.launch.hardware import choose_hardware


@pytest.mark.parametrize(
    ("gpus", "device", "workers", "chosen"),
    [
        (0, "auto", 0, ("cpu", 1)),
        (0, "cpu", 3, ("cpu", 3)),
        (4, "auto", 0, ("cuda", 4)),
        (4, "cuda", 2, ("cuda", 2)),
        (4, "cpu", 0, ("cpu", 1)),
    ],
)
def test_all_gpus_or_one_worker_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, gpus: int, device: str, workers: int, chosen: tuple[str, int]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert choose_hardware(device, workers) == chosen


@pytest.mark.parametrize(("gpus", "workers", "cure"), [(0, 0, "--device cpu"), (2, 3, "at most 2 --workers")])
def test_gpus_that_are_not_there_are_named(
    monkeypatch: pytest.MonkeyPatch, gpus: int, workers: int, cure: str
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(TandemError, match=f"This machine has {gpus} GPU.*{cure}"):
        choose_hardware("cuda", workers)


def test_other_devices_are_refused() -> None:
    with pytest.raises(TandemError, match="'tpu': make --device auto, cpu or cuda"):
        choose_hardware("tpu", 1)
