"""Work that leaves the processor to everybody else."""

import os
import threading
from contextlib import suppress

__all__ = ["step_back"]

LOW = 5
"""Not the lowest: a thread that has the interpreter and waits for a core on a busy machine holds up all answers."""


def step_back() -> None:
    """Give the calling thread a low priority, where the system has one for each thread."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW)
