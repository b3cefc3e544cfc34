"""Random bits for dropout: a hash of seed, place in the model and element, so that no mask is ever kept."""

import triton
import triton.language as tl

__all__ = ["kept", "threshold_of"]


def threshold_of(share: float) -> int:
    """What `kept` must be given so that this share is dropped."""
    return min(round(share * 2**32), 2**32 - 1)


@triton.jit
def kept(seed_ptr, site, offsets, threshold):
    """Whether each element stays: a block of booleans of the shape of `offsets`, which count below 2**32."""
    # Two keys enter at two points of the hash, so that two sites or seeds are not shifted copies of each other.
    first = _mix(tl.load(seed_ptr).to(tl.uint32, bitcast=True) + site.to(tl.uint32) * 0x9E3779B9)
    second = _mix(tl.load(seed_ptr + 1).to(tl.uint32, bitcast=True) ^ first)
    bits = offsets.to(tl.uint32) ^ first
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15) ^ second) * 0x846CA68B
    bits = bits ^ (bits >> 16)
    return bits >= threshold.to(tl.uint32)


@triton.jit
def _mix(bits):
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)
