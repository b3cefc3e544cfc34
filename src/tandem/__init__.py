"""Tandem trains translation models across machines, and tells the truth about the run."""

__version__ = "0.1.0"

__all__ = ["__version__"]
