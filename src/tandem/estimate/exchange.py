"""The time that exchanging gradients between hosts adds to a step, by the arithmetic of bytes."""

from collections.abc import Mapping

__all__ = ["MOST_EXPOSED", "NUMBER_BYTES", "codec_seconds", "exposed_seconds", "host_bytes"]

MOST_EXPOSED = 0.1
"""Share of a step that an exchange may cost; from here on the report calls it partly the bottleneck."""
NUMBER_BYTES: Mapping[str, float] = {"exact": 4.0, "bf16": 2.0, "packed": 34 / 64}
"""By mode, the most exact one first: bytes of a gradient's number on its way; `packed` is 4 bits and a scale for 64."""

_ENCODE_S = {"exact": 0.0, "bf16": 0.7e-9, "packed": 5.6e-9}
_DECODE_S = {"exact": 0.0, "bf16": 0.3e-9, "packed": 2.4e-9}
"""Seconds a number on one core of an AMD EPYC; of `packed` by benchmarks/codec.py, of `bf16` roughly."""


def codec_seconds(mode: str, parameters: float, *, hosts: int, shares: int) -> float:
    """Seconds in which a rank on a CPU encodes and decodes in a step; on a GPU it takes a hundredth of that.

    Each of a host's `shares` ranks encodes its share, and every rank decodes what all hosts sent: two hosts their
    sums, more of them the parts of the share at hand and then the whole once.
    """
    share = parameters / shares
    encoded = share if hosts == 2 else share * (1 + 1 / hosts)
    decoded = 2 * parameters if hosts == 2 else parameters + share * (hosts - 1) / hosts
    return _ENCODE_S[mode] * encoded + _DECODE_S[mode] * decoded


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
