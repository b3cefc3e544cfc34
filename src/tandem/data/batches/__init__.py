"""The update plan and the batches dealt from it to any number of ranks."""
