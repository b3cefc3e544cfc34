"""Checkpoints: written beside training, whole or absent; opened to go on, or to translate."""
