"""What this host is doing: where the time of a step goes."""
