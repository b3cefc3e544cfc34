"""The sampler: one small process a host that looks once a second at what the host is doing."""
