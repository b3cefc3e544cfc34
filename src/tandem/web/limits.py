"""What a connection may take: time for the head of a request and for its body, connections, open files."""

import resource
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["ConnectionLimits", "allow_open_files"]

ENOUGH_FILES = 65_536
"""More are of no use here, and some libraries go through all that a process may open."""
CONNECTIONS_SHARE = 4
"""Connections take a quarter of the files at most: the rest is for logs, models and what is read meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Times in seconds; what is beyond them is cut off."""

    head_s: float = 10.0
    """From the connection, or from the last answer on it, to the end of a request's head."""
    body_s: float = 30.0
    """From the head of a request to the end of its body, whether it is read or not."""
    unread_s: float = 60.0
    """In which a client must have taken some of an answer that waits for it."""
    connections: int = 256
    """At once; beyond, those go whose request is not whole."""


def allow_open_files() -> int:
    """Let this process open as many files as it may, and tell how many of them connections may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a bound of their own that they do not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    allowed = ENOUGH_FILES if soft == resource.RLIM_INFINITY else min(soft, ENOUGH_FILES)
    return max(allowed // CONNECTIONS_SHARE, 1)
