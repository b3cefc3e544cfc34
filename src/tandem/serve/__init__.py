"""Translation over HTTP: an API, a page, batches across requests, and an orderly end."""
