"""Training: one place builds a run, one loop runs it."""
