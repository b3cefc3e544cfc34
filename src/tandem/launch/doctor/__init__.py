"""Whether a cluster is fit to train on: measured host by host and link by link, then judged."""
