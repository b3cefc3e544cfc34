import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import count

import pytest

from tandem.errors import TandemError
from tandem.parallel import meeting
from tandem.parallel.loopback import LoopbackListener, find_listener
from tandem.parallel.meeting import _choose_interface, _GuardedGloo, _listen

INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment of the test's own, in which the first host is this one."""
    own = {name: value for name, value in os.environ.items() if name not in INTERFACES}
    own["MASTER_ADDR"] = "127.0.0.1"
    monkeypatch.setattr(os, "environ", own)
    return own


def chosen(variables: dict[str, str]) -> list[str | None]:
    return [variables.get(name) for name in INTERFACES]


def test_ranks_of_one_host_never_leave_it_whatever_the_environment_says(variables: dict[str, str]) -> None:
    variables["NCCL_SOCKET_IFNAME"] = "eth5"
    _choose_interface(is_one_host=True)
    assert chosen(variables) == ["lo", "=lo"]


def test_ranks_of_several_hosts_take_the_interface_that_leads_to_the_first(
    variables: dict[str, str],
) -> None:
    _choose_interface(is_one_host=False)
    assert chosen(variables) == ["lo", "=lo"]


def test_an_interface_that_is_named_wins(variables: dict[str, str]) -> None:
    variables["GLOO_SOCKET_IFNAME"] = "eth5"
    _choose_interface(is_one_host=False)
    assert chosen(variables) == ["eth5", "=lo"]


def test_the_store_listens_at_one_address_alone() -> None:
    with _listen("127.0.0.1", 0, is_one_host=True) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_taken_port_is_named_with_the_cure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TandemError, match=f"port {port}: .*; give another MASTER_PORT"):
            _listen("127.0.0.1", port, is_one_host=True)


@pytest.fixture
def strangers() -> Iterator[ExitStack]:
    with ExitStack() as strangers:
        yield strangers


def visit_first(strangers: ExitStack, monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """Let somebody connect to so many listeners before their filter is there."""
    opened = count()

    def find(address: str, *, besides: set[int]) -> LoopbackListener | None:
        listener = find_listener(address, besides=besides)
        if listener is not None and next(opened) < times:
            strangers.enter_context(socket.create_connection((address, listener.port)))
        return listener

    monkeypatch.setattr(meeting, "find_listener", find)


def test_a_listener_to_which_somebody_came_before_its_filter_is_given_up_for_another(
    strangers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit_first(strangers, monkeypatch, times=20)
    device, listener = _GuardedGloo(None, timedelta(seconds=30))._listen(0, is_filtered=True)
    with listener:
        assert device is not None
        assert not listener.has_visitors()


def test_who_comes_to_every_listener_is_named_in_the_end(
    strangers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit_first(strangers, monkeypatch, times=5)
    monkeypatch.setattr(meeting, "_LISTENERS", 5)
    with pytest.raises(
        TandemError, match="Another user of this host connects to whatever Tandem opens, 5 times"
    ):
        _GuardedGloo(None, timedelta(seconds=30))._listen(0, is_filtered=True)
