from tandem.cli.library import load_translator as load_translator

__all__ = ["__version__", "load_translator"]

__version__: str
