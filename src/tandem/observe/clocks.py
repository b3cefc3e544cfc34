"""Why a GPU's clock is held down: by its own power limit, as is usual under load, or by a fault."""

__all__ = ["CAPPED", "is_fault"]

CAPPED = "power"
"""The reason, in HostSampled, that is none to worry about."""


def is_fault(reason: object) -> bool:
    """Whether heat, the power supply or the hardware holds the clock down."""
    return bool(reason) and reason != CAPPED
