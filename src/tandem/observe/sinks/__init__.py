"""Other programs that show a run: each is fed with the records of the run log."""
