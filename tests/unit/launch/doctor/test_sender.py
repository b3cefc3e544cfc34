import json
import socket
from itertools import count
from typing import Any

import pytest

from tandem.launch.doctor import listener as listener_module
from tandem.launch.doctor import sender
from tandem.launch.doctor.listener import Listener, prove, read_line
from tandem.launch.doctor.sender import measure, try_port

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def port() -> int:
    number = Listener(TOKEN, address="127.0.0.1").open(0)
    assert number is not None
    return number


def test_a_listener_that_knows_the_token_is_open(port: int) -> None:
    assert try_port("127.0.0.1", port, TOKEN) == "open"


def test_a_stranger_is_turned_away(port: int) -> None:
    assert try_port("127.0.0.1", port, "another") == "no answer"


def hear(connection: socket.socket) -> dict[str, Any]:
    return read_line(connection, limit_s=30)


def say(connection: socket.socket, words: Any) -> None:
    connection.sendall(json.dumps(words).encode() + b"\n")


def proven(nonce: str, **words: Any) -> dict[str, Any]:
    return {**words, "proof": prove(TOKEN, nonce, words)}


@pytest.mark.parametrize(
    "words",
    [
        "GET / HTTP/1.0\r",
        [],
        7,
        None,
        {},
        {"do": "hello"},
        {"do": "hello", "token": TOKEN},
        {"do": "hello", "proof": TOKEN},
        {"do": "hello", "proof": "\ud800"},
    ],
)
def test_noise_on_the_port_harms_nothing(port: int, words: Any) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        hear(connection)
        say(connection, words)
        assert connection.recv(1) == b""
    assert try_port("127.0.0.1", port, TOKEN) == "open"


@pytest.mark.parametrize("words", [{"do": "anything"}, {"do": ["hello"]}, {"do": "sink", "seconds": "x"}])
def test_who_knows_the_token_and_asks_nonsense_harms_nothing(port: int, words: dict[str, Any]) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        say(connection, proven(hear(connection)["nonce"], **words))
        connection.shutdown(socket.SHUT_WR)
        assert b"bytes" not in connection.makefile("rb").read()
    assert try_port("127.0.0.1", port, TOKEN) == "open"


def test_what_was_heard_on_the_network_opens_nothing(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        words = proven(hear(connection)["nonce"], do="hello")
        assert TOKEN not in json.dumps(words)
        say(connection, words)
        assert hear(connection) == {}
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        assert hear(connection)["nonce"]
        say(connection, words)
        assert connection.recv(1) == b""
    # Nor may a request be another than the proven one.
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        say(connection, {**proven(hear(connection)["nonce"], do="hello"), "do": "sink"})
        assert connection.recv(1) == b""


def test_nothing_that_is_asked_for_takes_long(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "_LONGEST_S", 0.2)
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        nonce = hear(connection)["nonce"]
        say(connection, proven(nonce, do="sink", seconds=1e9, skip_s=0.0))
        assert hear(connection) == {}
        connection.sendall(b"x")
        assert set(hear(connection)) == {"bytes", "seconds"}


class Dripping(socket.socket):
    """Gives a byte at a time."""

    def recv(self, _: int, flags: int = 0) -> bytes:
        return super().recv(1, flags)


def test_bytes_now_and_then_make_the_time_for_a_line_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b" " * 100)
    now = count()
    monkeypatch.setattr("tandem.launch.doctor.listener.time.monotonic", lambda: float(next(now)))
    with theirs, Dripping(fileno=ours.detach()) as slow:
        with pytest.raises(TimeoutError, match="no whole line"):
            read_line(slow, limit_s=10.0)
        assert len(slow.recv(1)) == 1


def test_it_listens_at_one_address_alone() -> None:
    listener = Listener(TOKEN, address="127.0.0.2")
    number = listener.open(0)
    assert number is not None
    assert try_port("127.0.0.2", number, TOKEN) == "open"
    assert try_port("127.0.0.1", number, TOKEN) == "refused"
    listener.close()


def silent_from(address: str, number: int, many: int) -> list[socket.socket]:
    """Connections that say nothing, each of which was noticed: it was spoken to, or has lost its place."""
    made = [socket.create_connection(("127.0.0.1", number), 30, (address, 0)) for _ in range(many)]
    for each in made:
        each.recv(1)
    return made


def test_strangers_have_few_places_and_none_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "_MOST_STRANGERS", 2)
    monkeypatch.setattr(listener_module, "_TOKEN_S", 0.2)
    listener = Listener(TOKEN, address="127.0.0.1")
    number = listener.open(0)
    assert number is not None
    # Most lose their place to others, and the last ones when they have shown nothing.
    for each in silent_from("127.0.0.1", number, 20):
        each.makefile("rb").read()
        each.close()
    assert try_port("127.0.0.1", number, TOKEN) == "open"
    listener.close()


@pytest.mark.parametrize("stranger", ["127.0.0.9", "127.0.0.1"], ids=["elsewhere", "on a host of the run"])
def test_silent_strangers_keep_no_host_out(stranger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "_MOST_STRANGERS", 8)
    monkeypatch.setattr(listener_module, "_MOST_FROM_HOSTS", 8)
    monkeypatch.setattr(listener_module, "_TOKEN_S", 60.0)
    listener = Listener(TOKEN, address="127.0.0.1", hosts=["127.0.0.1"])
    number = listener.open(0)
    assert number is not None
    held = silent_from(stranger, number, 50)
    assert try_port("127.0.0.1", number, TOKEN) == "open"
    for each in held:
        each.close()
    listener.close()


def test_a_port_where_somebody_listens_and_says_nothing_is_no_closed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert try_port("127.0.0.1", server.getsockname()[1], TOKEN) == "no answer"


def test_a_port_where_nobody_listens_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
    assert try_port("127.0.0.1", number, TOKEN) == "refused"


def test_a_port_that_another_program_has_is_not_opened() -> None:
    with socket.create_server(("", 0)) as server:
        assert Listener(TOKEN, address="127.0.0.1").open(server.getsockname()[1]) is None


def test_a_link_without_faults_is_measured_without_loss(port: int) -> None:
    held = measure("127.0.0.1", port, TOKEN, seconds=0.1, datagrams=200)
    assert held["loss"] == 0.0
    assert held["bytes_per_s"] > 1e6
    assert 0 < held["latency_s"] < 1


def test_datagrams_that_do_not_arrive_are_lost(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    datagrams = count()

    class Lossy(socket.socket):
        def send(self, data: Any, flags: int = 0) -> int:
            is_lost = self.type == socket.SOCK_DGRAM and next(datagrams) % 10 == 0
            return len(data) if is_lost else super().send(data, flags)

    monkeypatch.setattr("tandem.launch.doctor.sender.socket.socket", Lossy)
    assert measure("127.0.0.1", port, TOKEN, seconds=0.1, datagrams=200)["loss"] == pytest.approx(0.1)


def test_a_sender_that_goes_away_ends_the_count(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        say(connection, proven(hear(connection)["nonce"], do="count"))
        assert set(hear(connection)) == {"port", "ticket"}
        connection.shutdown(socket.SHUT_WR)
        assert hear(connection) == {"received": 0, "overflowed": 0}


def test_overflows_of_our_own_buffer_are_read_from_what_the_kernel_says() -> None:
    said = [(socket.SOL_SOCKET, 40, (7).to_bytes(4, "little")), (1, 2, b"")]
    assert listener_module._overflows(said) == 7
    assert listener_module._overflows([(socket.SOL_SOCKET, 40, b"")]) == 0


def test_a_stream_that_stalls_once_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def stalls_once(*_: object) -> float:
        calls.append(5e6)
        if len(calls) == 1:
            raise TimeoutError("timed out")
        return calls[-1]

    monkeypatch.setattr(sender, "_latency", lambda *_: 0.001)
    monkeypatch.setattr(sender, "_bandwidth", stalls_once)
    assert measure("10.0.0.1", 1, "t", seconds=1.0, datagrams=0)["bytes_per_s"] == 5e6
