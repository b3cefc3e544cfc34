"""A bilingual grammar written for this project: any number of correct English–German pairs from a seed."""

from tandem.data.corpus.builtin.pairs import GRAMMAR_VERSION, builtin_pairs

__all__ = ["GRAMMAR_VERSION", "builtin_pairs"]
