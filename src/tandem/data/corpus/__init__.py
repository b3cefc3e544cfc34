"""Sentence pairs: reading, filters, cleaning, and the built-in grammar."""
