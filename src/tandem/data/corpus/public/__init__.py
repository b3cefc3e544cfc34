"""Public corpora: which there are, and how they come from their publishers into a folder of aligned text."""

__all__: list[str] = []
