"""Series: a run's logs folded into columns."""
