"""The report: the eleven answers about a run, for a terminal, a page, a paste and a machine."""
