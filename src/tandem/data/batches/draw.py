"""Randomness without state: the same key gives the same draws on every machine, rank and numpy version."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Purpose", "permutation"]


class Purpose(IntEnum):
    """What draws are for; part of their key, so that no two uses share numbers."""

    BLOCK_PHASE = 1
    BLOCK_ORDER = 2
    PAIR_ORDER = 3
    UPDATE_ORDER = 4


def permutation(size: int, purpose: Purpose, *key: int) -> NDArray[np.int64]:
    """A random order of `size` things that depends on nothing but the key (seed, epoch, …)."""
    # numpy promises the raw stream of a bit generator for ever, but not what its shuffles make of it.
    draws = np.random.PCG64(np.random.SeedSequence([purpose, *key])).random_raw(size)
    return np.argsort(draws, kind="stable")
