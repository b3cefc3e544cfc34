"""Random numbers that the draws have in common."""

import numpy as np

__all__ = ["log_uniform"]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose size is anybody's guess between the two."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
