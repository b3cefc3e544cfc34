"""Encoded sentence pairs on disk: a memory-mapped, checksummed, versioned format."""
