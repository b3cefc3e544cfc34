"""The port: taken or not, named or free."""

import socket
from urllib.parse import urlsplit

import pytest

from tandem.errors import TandemError
from tandem.web import listening
from tandem.web.listening import address_of, is_loopback, listen


def test_a_port_that_is_taken_is_said_before_anything_is_loaded() -> None:
    with listen("127.0.0.1", 0) as first:
        first.listen()
        number = first.getsockname()[1]
        assert number > 0
        with pytest.raises(TandemError, match=f"port {number} .*take another --port"):
            listen("127.0.0.1", number)


def test_an_address_that_is_not_there_is_refused() -> None:
    with pytest.raises(TandemError, match="take another --host"):
        listen("no such host", 0)


def test_only_this_machine_reaches_loopback_and_a_browser_is_told_where() -> None:
    with listen("localhost", 0) as here, listen("0.0.0.0", 0) as everywhere:
        assert is_loopback(here)
        assert not is_loopback(everywhere)
        assert address_of(here) == f"http://127.0.0.1:{here.getsockname()[1]}/"
        found = urlsplit(address_of(everywhere))
        assert found.port == everywhere.getsockname()[1]
        assert found.hostname not in {None, "", "0.0.0.0", "127.0.0.1"}


def test_without_a_way_to_others_the_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "ELSEWHERE", {socket.AF_INET: "no address"})
    monkeypatch.setattr(socket, "gethostname", lambda: "node-a")
    with listen("0.0.0.0", 0) as everywhere:
        assert address_of(everywhere) == f"http://node-a:{everywhere.getsockname()[1]}/"
