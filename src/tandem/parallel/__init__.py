"""Ranks that work as one: what they say to each other, and how their gradients are summed."""
