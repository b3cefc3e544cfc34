"""The port: taken or not, named or free."""

import pytest

from tandem.errors import TandemError
from tandem.port import address_of, is_loopback, listen


def test_a_port_that_is_taken_is_said_before_anything_is_loaded() -> None:
    with listen("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        assert port > 0
        with pytest.raises(TandemError, match=f"port {port} .*take another --port"):
            listen("127.0.0.1", port)


def test_an_address_that_is_not_there_is_refused() -> None:
    with pytest.raises(TandemError, match="take another --host"):
        listen("no such host", 0)


def test_only_this_machine_reaches_loopback_and_a_browser_is_told_where() -> None:
    with listen("localhost", 0) as here, listen("0.0.0.0", 0) as everywhere:
        assert is_loopback(here)
        assert not is_loopback(everywhere)
        assert address_of(everywhere) == f"http://0.0.0.0:{everywhere.getsockname()[1]}/"
