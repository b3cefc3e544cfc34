"""Randomness without state: every draw's seed follows from what it is for and where it happens."""

from hashlib import blake2b

__all__ = ["derived_seed"]


def derived_seed(seed: int, purpose: str, *place: int) -> int:
    """A number below 2^63 for this purpose at this place, the same on every machine and version."""
    words = "/".join([str(seed), purpose, *map(str, place)])
    return int.from_bytes(blake2b(words.encode(), digest_size=8).digest()) >> 1
