"""Readers of runs and data cards: figures, reports. No torch, no maker."""
