"""Paths as a person wants to read them."""

from pathlib import Path

from tandem.observe.visible import visible

__all__ = ["near"]


def near(path: Path) -> str:
    """The path as seen from the current folder, where it lies below."""
    here = Path.cwd()
    return visible(str(path.relative_to(here) if path.is_relative_to(here) else path))
