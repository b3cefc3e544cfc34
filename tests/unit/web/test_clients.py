"""Who asks: users of one host are told from each other."""

import socket

import pytest

from tandem.web import clients
from tandem.web.clients import client_network, client_of
from tandem.web.keys import Keys, Patience

OWNERS = {("127.0.0.1", 1): 1000, ("127.0.0.2", 2): 1001, ("127.0.0.3", 3): 1001}


@pytest.fixture
def _owners(monkeypatch: pytest.MonkeyPatch) -> None:
    def owner(end: tuple[str, int], _: tuple[str, int]) -> int | None:
        if end[0] == "198.51.100.1":
            raise OSError
        return OWNERS.get(end)

    monkeypatch.setattr(clients, "owner_of", owner)


def client(host: str, port: int) -> str:
    return client_of({"type": "http", "client": (host, port), "server": ("127.0.0.1", 8000)})


@pytest.mark.usefixtures("_owners")
def test_one_user_of_a_host_keeps_no_other_out_whatever_address_he_takes() -> None:
    keys = Keys(["the-right-key"], name="API key", patience=Patience(forgiven=1, clock=lambda: 0.0))
    stranger = [client("127.0.0.2", 2), client("127.0.0.3", 3)]
    said = [keys.check("wrong", stranger[number % 2]) for number in range(4)]
    assert [each.status for each in said if each] == [403, 403, 429, 429]
    assert keys.check("the-right-key", client("127.0.0.1", 1)) is None


@pytest.mark.usefixtures("_owners")
def test_without_an_owner_it_is_the_address_that_counts() -> None:
    assert client("192.0.2.1", 9) == "192.0.2.1"
    assert client("198.51.100.1", 9) == "198.51.100.1"
    # As a proxy on this host tells it.
    assert client("127.0.0.1", 0) == "127.0.0.1"
    assert client_of({"type": "http"}) == ""


def test_a_connection_on_this_host_is_its_users() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as end,
    ):
        scope = {"type": "http", "client": end.getsockname(), "server": end.getpeername()}
        assert client_of(scope).startswith("user ")
        assert client_network(client_of(scope)) == client_of(scope)
