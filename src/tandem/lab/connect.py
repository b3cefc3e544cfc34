"""`python -m tandem.lab.connect NAMESPACE ADDRESS PORT`: connects there and hands the socket to ssh."""

import socket
import sys

from tandem.lab.enter import join_network

__all__ = ["main"]


def main() -> None:
    """Connect, and pass the socket on over standard output, which is a Unix socket of ssh."""
    namespace, address, port = sys.argv[1:]
    try:
        join_network(namespace)
        connection = socket.create_connection((address, int(port)))
    except OSError as error:
        sys.exit(f"error: Cannot reach {address}: {error.strerror}; is the link up, and the lab?")
    with connection, socket.socket(fileno=1) as ssh:
        socket.send_fds(ssh, [b"\0"], [connection.fileno()])


if __name__ == "__main__":
    main()
