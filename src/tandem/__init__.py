"""Tandem trains translation models across machines, and tells the truth about the run."""

from importlib import import_module

from tandem.process import leave_working_folder

__version__ = "0.1.0"

__all__ = ["__version__", "load_translator"]

leave_working_folder()


def __getattr__(name: str) -> object:
    # Only when it is asked for: PyTorch takes seconds to load.
    if name == "load_translator":
        return import_module("tandem.cli.library").load_translator
    raise AttributeError(f"module 'tandem' has no attribute {name!r}")
