import json
import socket
from typing import Any

import pytest

from tandem.launch.doctor import listener as listener_module
from tandem.launch.doctor import sender
from tandem.launch.doctor.listener import Listener
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
    assert try_port("127.0.0.1", port, "another") == "refused"


def test_noise_on_the_port_harms_nothing(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.recv(1) == b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(json.dumps({"token": TOKEN, "do": "anything"}).encode() + b"\n")
        assert connection.recv(1) == b""
    assert try_port("127.0.0.1", port, TOKEN) == "open"


def test_it_listens_at_one_address_alone() -> None:
    listener = Listener(TOKEN, address="127.0.0.2")
    number = listener.open(0)
    assert number is not None
    assert try_port("127.0.0.2", number, TOKEN) == "open"
    assert try_port("127.0.0.1", number, TOKEN) == "refused"
    listener.close()


def test_strangers_take_a_bounded_number_of_threads_and_none_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "_MOST_AT_ONCE", 2)
    monkeypatch.setattr(listener_module, "_TOKEN_S", 0.2)
    listener = Listener(TOKEN, address="127.0.0.1")
    number = listener.open(0)
    silent = [socket.create_connection(("127.0.0.1", number), 30) for _ in range(20)]
    # Most are turned away at once, and the others when they have shown nothing.
    assert [connection.recv(1) for connection in silent] == [b""] * 20
    for connection in silent:
        connection.close()
    assert number is not None
    assert try_port("127.0.0.1", number, TOKEN) == "open"
    listener.close()


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
    count = iter(range(10_000))

    class Lossy(socket.socket):
        def send(self, data: Any, flags: int = 0) -> int:
            is_lost = self.type == socket.SOCK_DGRAM and next(count) % 10 == 0
            return len(data) if is_lost else super().send(data, flags)

    monkeypatch.setattr("tandem.launch.doctor.sender.socket.socket", Lossy)
    assert measure("127.0.0.1", port, TOKEN, seconds=0.1, datagrams=200)["loss"] == pytest.approx(0.1)


def test_a_sender_that_goes_away_ends_the_count(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(json.dumps({"token": TOKEN, "do": "count"}).encode() + b"\n")
        said = connection.makefile("rb")
        assert json.loads(said.readline())["port"]
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(said.readline()) == {"received": 0, "overflowed": 0}


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
