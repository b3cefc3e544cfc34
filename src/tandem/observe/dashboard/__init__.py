"""Runs as they go on, in a browser: a server that reads their logs and a page that shows them."""
