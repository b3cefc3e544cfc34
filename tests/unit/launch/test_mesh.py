"""Two ends of a mesh on one host: each has a loopback network of its own, as two hosts would."""

import json
import os
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict

import pytest

from tandem.errors import TandemError
from tandem.launch import mesh
from tandem.launch.identity import Identity
from tandem.launch.mesh import Mesh, Peer
from tandem.launch.streams import HEADER_BYTES
from tandem.parallel.key_values import LineConnection
from tandem.parallel.loopback import rank_address
from tandem.parallel.store import RankStore

NETWORKS = (211, 212)
STUCK_S = 1.0
MOST_UNREAD_BYTES = 128 << 20
"""What five sockets with the largest buffers of common systems and two blocks hold is far less."""


@pytest.fixture
def ends() -> Iterator[tuple[Mesh, Mesh]]:
    with two_ends() as ends:
        yield ends


@contextmanager
def two_ends() -> Iterator[tuple[Mesh, Mesh]]:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(closing(Mesh(name=name, address="127.0.0.1"))) for name in ("a", "b")
        )
        peers = [peer(end, rank) for rank, end in enumerate((first, second))]
        for own, (end, network) in enumerate(zip((first, second), NETWORKS, strict=True)):
            end.join({"peers": [asdict(each) for each in peers], "own": own, "network": network})
        yield first, second


def peer(end: Mesh, rank: int) -> Peer:
    return Peer(
        name=f"h{rank}",
        address="127.0.0.1",
        port=end.port,
        certificate=end.certificate,
        first_rank=rank,
        ranks=1,
    )


def ask(end: Mesh, **request: object) -> dict[str, object]:
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(end.socket_path))
        lines = LineConnection(connection)
        lines.send(request)
        return lines.receive() or {}


@pytest.fixture
def carried(ends: tuple[Mesh, Mesh]) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection from the first host to rank 1, by both of its ends."""
    with socket.create_server((rank_address(NETWORKS[1], 1), 0)) as rank:
        port = rank.getsockname()[1]
        assert ask(ends[1], do="announce", rank=1, port=port) == {}
        with socket.create_connection((rank_address(NETWORKS[0], 1), port), 30) as near:
            rank.settimeout(30)
            far, _ = rank.accept()
            with far:
                far.settimeout(30)
                yield near, far


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


def test_bytes_go_both_ways_and_an_end_is_missed_at_once(
    carried: tuple[socket.socket, socket.socket],
) -> None:
    near, far = carried
    data = os.urandom(1 << 16)
    near.sendall(data)
    assert receive(far, len(data)) == data
    far.sendall(data[::-1])
    assert receive(near, len(data)) == data[::-1]
    far.close()
    assert near.recv(1) == b""


def test_one_that_does_not_read_holds_the_sender_back_and_gets_every_byte_in_the_end(
    carried: tuple[socket.socket, socket.socket],
) -> None:
    near, far = carried
    block = os.urandom(1 << 20)
    near.setblocking(False)
    sent = 0
    while select.select([], [near], [], STUCK_S)[1]:
        with suppress(BlockingIOError):
            sent += near.send(block[sent % len(block) :])
        assert sent < MOST_UNREAD_BYTES, "the mesh takes whatever comes"
    left = sent
    while left:
        at = (sent - left) % len(block)
        part = receive(far, min(left, len(block) - at))
        assert part == block[at : at + len(part)]
        left -= len(part)


def test_another_user_of_the_host_reaches_no_rank_elsewhere_and_costs_no_thread(
    ends: tuple[Mesh, Mesh], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((rank_address(NETWORKS[1], 1), 0)) as rank:
        port = rank.getsockname()[1]
        assert ask(ends[1], do="announce", rank=1, port=port) == {}
        monkeypatch.setattr(mesh, "is_own_connection", lambda *_: False)
        monkeypatch.setattr(ends[0], "_take_safely", lambda *_: pytest.fail("a thread for a stranger"))
        for _ in range(20):
            with socket.create_connection((rank_address(NETWORKS[0], 1), port), 30) as stranger:
                assert stranger.recv(1) == b""
        rank.setblocking(False)
        with pytest.raises(BlockingIOError):
            rank.accept()


def test_ranks_of_all_hosts_have_one_store(ends: tuple[Mesh, Mesh]) -> None:
    stores = [RankStore(end.socket_path, timeout_s=30) for end in ends]
    stores[1].set("key", b"value")
    assert stores[0].get("key") == b"value"
    assert [store.add("number", 2) for store in stores] == [2, 4]
    for store in stores:
        store._lines.close()
        store._socket.close()


def test_a_host_announces_no_rank_but_its_own(ends: tuple[Mesh, Mesh]) -> None:
    assert ask(ends[0], do="announce", rank=1, port=4242) == {"error": "h1: rank 1 is on another host"}


@pytest.mark.parametrize(
    "header",
    [
        {"do": "there", "stream": "s", "rank": 0},
        {"do": "announce", "rank": -1, "port": 1},
        {"do": "announce", "rank": 1, "port": 1},
        {"do": "nothing", "rank": 0},
        {"rank": "x"},
    ],
)
@pytest.mark.parametrize("has_key", [False, True])
def test_who_has_no_key_of_this_start_gets_no_answer(
    ends: tuple[Mesh, Mesh], header: dict[str, object], has_key: bool
) -> None:
    stranger = Identity("a")
    context = stranger.context(ssl.PROTOCOL_TLS_CLIENT, [ends[0].certificate])
    if not has_key:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    answer = b""
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", ends[0].port), 30) as plain,
        context.wrap_socket(plain) as secure,
    ):
        secure.sendall(json.dumps(header).encode().ljust(HEADER_BYTES))
        answer = secure.recv(1)
    assert answer == b""


@pytest.mark.parametrize("is_on_a_host", [False, True])
def test_silent_strangers_keep_no_host_out(is_on_a_host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "_MOST_HANDSHAKES", 8)
    monkeypatch.setattr(mesh, "_MOST_STRANGERS", 8)
    monkeypatch.setattr(mesh, "HANDSHAKE_S", 600.0)
    with ExitStack() as stack:
        first, second = stack.enter_context(two_ends())
        source = ("127.0.0.1" if is_on_a_host else "127.0.0.9", 0)
        for _ in range(50):
            place = ("127.0.0.1", second.port)
            stack.enter_context(socket.create_connection(place, 30, source_address=source))
        assert ask(first, do="announce", rank=0, port=4242) == {}


def test_the_port_of_another_program_is_refused_with_the_cure() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(TandemError, match="give another --port or --nic"),
    ):
        Mesh(name="a", address="127.0.0.1", port=taken.getsockname()[1])
