"""Several hosts with real links on one Linux machine, made of network namespaces."""

from tandem.lab.lab import Lab
from tandem.lab.link import Link

__all__ = ["Lab", "Link"]
