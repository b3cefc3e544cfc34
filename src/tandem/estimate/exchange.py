"""The time that exchanging gradients between hosts adds to a step, by the arithmetic of bytes."""

from collections.abc import Mapping

__all__ = ["NUMBER_BYTES", "exposed_seconds", "host_bytes"]

NUMBER_BYTES: Mapping[str, float] = {"exact": 4.0, "bf16": 2.0, "packed": 34 / 64}
"""By mode, the most exact one first: bytes of a gradient's number on its way; `packed` is 4 bits and a scale for 64."""


def host_bytes(mode: str, parameters: float, *, hosts: int, ranks: int) -> float:
    """Bytes that a host sends, and receives, in a step; the vectors, which always go exactly, are not told apart.

    An exact exchange is a ring of all ranks; else hosts send each other parts, and then the sums of these.
    """
    if hosts < 2:
        return 0.0
    members = ranks if mode == "exact" else hosts
    return 2 * (members - 1) / members * parameters * NUMBER_BYTES[mode]


def exposed_seconds(transfer_s: float, *, hiding_s: float, tail_share: float) -> float:
    """Seconds of an exchange that computing does not hide, where it can hide `hiding_s`.

    The last bucket is complete only when backward ends: `tail_share` of the exchange never hides.
    """
    return max(transfer_s - hiding_s, tail_share * transfer_s)
