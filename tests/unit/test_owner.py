"""Whose a connection is, as the system tells it."""

import os
import socket
import subprocess
import sys

import pytest
from tests.strangers import NOBODY

from tandem.owner import owner_of


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_each_end_of_a_connection_has_an_owner_until_it_is_closed(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        with socket.create_connection(server.getsockname()[:2]) as client:
            here, there = client.getsockname()[:2], client.getpeername()[:2]
            assert owner_of(here, there) == os.geteuid()
            assert owner_of(there, here) == os.geteuid()
        assert owner_of(here, there) is None


def test_a_listener_is_nobodys_connection_and_what_is_elsewhere_has_no_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert owner_of(server.getsockname(), ("127.0.0.1", 1)) is None
    assert owner_of(("192.0.2.1", 1), ("192.0.2.2", 2)) is None
    assert owner_of(("127.0.0.1", 1), ("::1", 2)) is None


def test_a_connection_by_the_other_family_has_an_owner_too() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as client,
    ):
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        accepted, there = server.accept()
        with accepted:
            assert owner_of(there, accepted.getsockname()) == os.geteuid()
            assert owner_of(client.getsockname()[:2], client.getpeername()[:2]) == os.geteuid()


CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
connection = socket.socket()
connection.connect(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_told_from_this_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        words = [sys.executable, "-I", "-c", CONNECT, str(server.getsockname()[1]), str(NOBODY)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, cwd="/") as process:
            accepted, there = server.accept()
            with accepted:
                assert owner_of(there, accepted.getsockname()) == NOBODY
            process.kill()
