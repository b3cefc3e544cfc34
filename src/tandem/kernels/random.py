"""Random bits for dropout: a hash of seed, place in the model and element, so that no mask is ever kept."""

import triton
import triton.language as tl

__all__ = ["kept", "kept_by", "keys_of", "threshold_of"]


def threshold_of(share: float) -> int:
    """What `kept` must be given so that this share is dropped."""
    return min(round(share * 2**32), 2**32 - 1)


@triton.jit
def kept(seed_ptr, site, offsets, threshold):
    """Whether each element stays: a block of booleans of the shape of `offsets`, which count below 2**32."""
    first, second = keys_of(seed_ptr, site)
    return kept_by(first, second, offsets, threshold)


@triton.jit
def keys_of(seed_ptr, site):
    """What `kept_by` needs to know of seed and site: a loop makes it once."""
    # Two keys enter at two points of the hash, so that two sites or seeds are not shifted copies of each other.
    first = _mix(tl.load(seed_ptr).to(tl.uint32, bitcast=True) + site.to(tl.uint32) * 0x9E3779B9)
    second = _mix(tl.load(seed_ptr + 1).to(tl.uint32, bitcast=True) ^ first)
    return first ^ (first >> 16), second


@triton.jit
def kept_by(first, second, offsets, threshold):
    """Like `kept`, by the keys."""
    bits = offsets.to(tl.uint32)
    bits = (bits ^ (bits >> 16) ^ first) * 0x7FEB352D
    # The upper bits decide, and they are mixed best: no more is done to the lower ones.
    bits = (bits ^ (bits >> 15) ^ second) * 0x846CA68B
    return bits >= threshold.to(tl.uint32)


@triton.jit
def _mix(bits):
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)
