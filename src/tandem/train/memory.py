"""How a rank uses the memory of its process."""

import ctypes

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""From glibc's malloc.h."""


def keep_freed_memory() -> None:
    """Let the process reuse the memory of freed tensors instead of handing it back, where the C library can.

    glibc maps every block over 32 MB anew, and each of its pages faults when first written. A step allocates the same
    blocks as the one before it: without this, a tenth of a training step on a CPU goes into page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # Where the first is refused, the second alone would do harm.
    if mallopt is not None and mallopt(_MMAP_THRESHOLD, 2**30):
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
