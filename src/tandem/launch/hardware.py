"""With what to train: which device, and how many workers."""

import torch

from tandem.errors import TandemError

__all__ = ["choose_hardware"]


def choose_hardware(device: str, workers: int, *, before: int = 1) -> tuple[str, int]:
    """Device and number of workers on this host; `auto` and 0 mean all GPUs, or on the CPU as many as before."""
    if device not in ("auto", "cpu", "cuda"):
        raise TandemError(f"There is no device {device!r}: make --device auto, cpu or cuda.")
    gpus = torch.cuda.device_count()
    if device == "cpu" or (device == "auto" and gpus == 0):
        return "cpu", workers or before
    if workers > gpus or gpus == 0:
        found = f"{gpus} GPU{'s' * (gpus != 1)}"
        cure = f"use at most {gpus} --workers, or --device cpu" if gpus else "use --device cpu"
        raise TandemError(f"This machine has {found} that torch {torch.__version__} can use: {cure}.")
    return "cuda", workers or gpus
