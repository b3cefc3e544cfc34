"""Which rank has its host sampled, and which GPUs are looked at there."""

import platform
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import cast

import torch

from tandem.config import TelemetrySection
from tandem.parallel.world import World
from tandem.telemetry.sampler.child import sampling

__all__ = ["sampling_host"]


def sampling_host(run: Path, rules: TelemetrySection, world: World) -> AbstractContextManager[None]:
    """While its ranks are inside, each host is sampled, and the GPUs that they use; all ranks ask together."""
    here = platform.node()
    used = cast(list[list[str]], world.gather([here, _maybe_uuid(world.device)]))
    if rules.sample_seconds is None or world.local_rank != 0:
        return nullcontext()
    gpus = [uuid for host, uuid in used if uuid and host == here]
    return sampling(run, every_s=rules.sample_seconds, gpus=gpus)


def _maybe_uuid(device: torch.device) -> str:
    return str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""
