"""How long the head of a run and its hosts wait for each other; apart, since the head needs no torch to know."""

__all__ = ["BEAT_S", "GRACE_S"]

BEAT_S = 2.0
"""How often each side shows that it lives."""
GRACE_S = 5.0
"""How long the others may take to notice that a rank is lost; over NCCL they would wait for it for ever."""
