"""Subword models: training, encoding, decoding."""
