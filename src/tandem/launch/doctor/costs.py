"""What weak links, disks and GPUs add to a step of the recipe, by the arithmetic of bytes and operations."""

import math

from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.quantity import bytes_a_second, seconds, size

__all__ = ["added_by_disk", "added_by_gpu", "added_by_link", "exchange_s"]


def exchange_s(needs: Needs, *, hosts: int, bytes_per_s: float) -> float:
    """Seconds in which a ring of hosts sums the gradients of a step at the speed of its slowest link."""
    return 2 * (hosts - 1) / hosts * needs.gradient_bytes / bytes_per_s


def added_by_link(needs: Needs, *, hosts: int, slow: float, fast: float) -> tuple[float, str]:
    """Seconds of a step, at most, that a link of `slow` bytes a second costs against one of `fast`; with a sentence."""
    here = exchange_s(needs, hosts=hosts, bytes_per_s=slow)
    added = here - exchange_s(needs, hosts=hosts, bytes_per_s=fast)
    return _told(
        added,
        f"gradients of a step ({size(needs.gradient_bytes)}) take {seconds(here)} over it, "
        f"{seconds(here - added)} over the fastest",
        "where no computing hides it",
    )


def added_by_disk(needs: Needs, *, slow: float, fast: float) -> tuple[float, str]:
    """The same of a disk's speed in writing checkpoints; nothing a step where nobody says when they are written."""
    here, there = needs.checkpoint_bytes / slow, needs.checkpoint_bytes / fast
    said = (
        f"a checkpoint ({size(needs.checkpoint_bytes)}) takes {seconds(here)} to write, "
        f"{seconds(there)} at {bytes_a_second(fast)}"
    )
    if not needs.checkpoint_steps:
        return 0.0, said
    return _told(
        (here - there) / needs.checkpoint_steps, said, f"with one every {needs.checkpoint_steps:,} steps"
    )


def added_by_gpu(needs: Needs, *, ranks: int, slow: float, fast: float) -> tuple[float, str]:
    """The same of operations a second: every rank waits for the slowest."""
    here, there = needs.step_flops / ranks / slow, needs.step_flops / ranks / fast
    if not here:
        return 0.0, "every rank waits for the slowest"
    said = f"a rank's part of a step takes {seconds(here)} at this speed, {seconds(there)} on the fastest"
    return _told(here - there, said, "or more, since no model reaches the speed of a plain product")


def _told(added: float, said: str, limit: str) -> tuple[float, str]:
    if not math.isfinite(added) or added <= 0:
        return 0.0, said
    return added, f"{said}: {seconds(added)} more a step, {limit}"
