import socket
from collections.abc import Iterator

import pytest

from tandem.errors import TandemError
from tandem.parallel import route
from tandem.parallel.route import interface_of, interface_towards, source_of


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_way_to_this_host_itself_is_its_loopback(address: str) -> None:
    if address == "::1" and not has_ipv6():
        assert interface_of(address) is None
        return
    assert source_of(address) == address
    assert interface_of(address) == interface_towards(address) == "lo"


def test_every_address_of_this_host_leads_back_to_its_interface() -> None:
    held = list(route._addresses())
    assert ("lo", "127.0.0.1") in held
    names = {name for name, _ in held}
    assert names <= {name for _, name in socket.if_nameindex()}
    assert {interface_of(address) for _, address in held} == names


def test_an_address_that_is_not_of_this_host_has_no_interface_here() -> None:
    assert interface_of("203.0.113.77") is None
    assert interface_of("2001:db8::77") is None


def test_a_name_that_nobody_knows_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(TandemError, match=r"cannot find gamma: Name or service not known; give an address"):
        source_of("gamma")
    assert interface_towards("gamma") is None


def test_a_host_that_takes_its_name_for_itself_is_reached_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = {"alpha": "127.0.0.1", "127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "192.0.2.1": "10.1.2.3"}

    def addresses() -> Iterator[tuple[str, str]]:
        yield from (("lo", "127.0.0.1"), ("eth7", "10.1.2.3"))

    monkeypatch.setattr(route, "source_of", ways.__getitem__)
    monkeypatch.setattr(route, "_addresses", addresses)
    assert interface_towards("alpha") == "eth7"
    assert interface_towards("127.0.0.1") == interface_towards("localhost") == "lo"
