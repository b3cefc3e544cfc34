"""Ranks that work as one: what they say to each other, and how their gradients are summed."""

from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import SoloWorld, TorchWorld, World, open_world

__all__ = ["GradientBuckets", "SoloWorld", "TorchWorld", "World", "open_world"]
