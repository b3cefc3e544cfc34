import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.strangers import NOBODY

from tandem.parallel import loopback
from tandem.parallel.loopback import (
    LoopbackListener,
    find_listener,
    is_own_connection,
    listening_ports,
    random_address,
    rank_address,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[3]))
connection = socket.socket()
connection.settimeout(3)
connection.connect((sys.argv[1], int(sys.argv[2])))
print(connection.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((random_address(), 0)) as server:
        server.settimeout(5)
        yield server


@pytest.fixture
def listener(server: socket.socket) -> Iterator[LoopbackListener]:
    found = find_listener(server.getsockname()[0])
    assert found is not None
    with found as listener:
        yield listener


@contextmanager
def connected(server: socket.socket, *, user: int = os.geteuid()) -> Iterator[int]:
    """A process of a user's that is connected; gives its port, 0 where it could not connect."""
    command = [sys.executable, "-I", "-c", CONNECT, *map(str, server.getsockname()), str(user)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline() or 0)
        process.kill()


def test_ranks_have_addresses_of_their_own_on_the_loopback_network() -> None:
    addresses = [rank_address(7, rank) for rank in range(1000)]
    assert len(set(addresses)) == 1000
    assert all(address.startswith("127.7.") for address in addresses)


def test_a_listener_that_a_library_opened_is_found_with_its_port(
    server: socket.socket, listener: LoopbackListener
) -> None:
    assert listener.port == server.getsockname()[1]
    assert find_listener(server.getsockname()[0], besides=[listener.port]) is None


def test_a_listener_is_found_without_the_table_of_the_system_which_takes_long_to_read(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> Iterator[object]:
        raise AssertionError("strangers come in meanwhile")

    monkeypatch.setattr(loopback, "_sockets", read)
    address, port = server.getsockname()
    assert listening_ports(address) == {port}
    found = find_listener(address)
    assert found is not None
    found.close()


def test_own_connections_are_no_strangers(server: socket.socket, listener: LoopbackListener) -> None:
    with connected(server) as port:
        accepted, theirs = server.accept()
        assert theirs[1] == port
        assert not listener.has_strangers()
        assert is_own_connection(server.getsockname(), theirs)
        accepted.close()


@needs_root
def test_a_connection_of_another_user_is_a_stranger(
    server: socket.socket, listener: LoopbackListener
) -> None:
    with connected(server, user=NOBODY):
        accepted, theirs = server.accept()
        assert listener.has_strangers()
        assert not is_own_connection(server.getsockname(), theirs)
        accepted.close()


def test_a_connection_whose_owner_is_gone_is_not_taken_for_an_own(server: socket.socket) -> None:
    with connected(server):
        accepted, theirs = server.accept()
    assert accepted.recv(1) == b""
    assert not is_own_connection(server.getsockname(), theirs)
    accepted.close()


def test_newcomers_are_refused_and_who_is_there_stays(
    server: socket.socket, listener: LoopbackListener
) -> None:
    with socket.create_connection(server.getsockname()) as first:
        accepted, _ = server.accept()
        listener.refuse_newcomers()
        with pytest.raises(TimeoutError):
            socket.create_connection(server.getsockname(), 0.3)
        first.sendall(b"still")
        assert accepted.recv(5) == b"still"
        accepted.close()


def test_whoever_has_come_before_the_filter_is_noticed_also_when_he_has_left(
    server: socket.socket, listener: LoopbackListener
) -> None:
    assert not listener.has_visitors()
    with connected(server):
        assert listener.has_visitors()
    assert listener.has_visitors()
    server.accept()[0].close()


@needs_root
def test_behind_the_filter_own_connections_arrive_and_no_others(
    server: socket.socket, listener: LoopbackListener
) -> None:
    listener.admit_only_own()
    with connected(server) as port:
        accepted, theirs = server.accept()
        assert theirs[1] == port != 0
        accepted.close()
    with connected(server, user=NOBODY) as port:
        assert port == 0
