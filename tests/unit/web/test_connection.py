"""What a client cannot do with its connections: hold them for ever, or take them all."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.unit.web.serving import DEADLINE_S, HALF, Address, answering, one_answer, trickle, whole

from tandem.web.limits import ConnectionLimits

SHORT = ConnectionLimits(head_s=0.05, body_s=0.05, unread_s=0.05)
REST = b"x\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def short() -> Iterator[Address]:
    with answering(SHORT) as address:
        yield address


@pytest.mark.parametrize("sent", [b"", b"G", HALF])
def test_a_head_that_does_not_end_is_not_waited_for(short: Address, sent: bytes) -> None:
    with short.connect(sent) as raw:
        assert whole(raw) == b""


def test_a_head_that_trickles_is_cut_off(short: Address) -> None:
    with short.connect(HALF) as raw:
        assert trickle(raw) == b""


def test_a_second_head_that_trickles_is_cut_off(short: Address) -> None:
    with short.connect(HALF + b"x\r\n\r\n") as raw:
        assert one_answer(raw).startswith(b"HTTP/1.1 200 ")
        raw.sendall(HALF)
        assert b"HTTP" not in trickle(raw)


@pytest.mark.parametrize("path", ["/echo", "/nowhere"])
def test_a_body_that_trickles_is_cut_off_whether_it_is_read_or_not(short: Address, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    with short.connect(head.encode()) as raw:
        assert b" 200 " not in trickle(raw)


def test_an_answer_that_nobody_takes_is_given_up(short: Address) -> None:
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect(("127.0.0.1", short.port))
        raw.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert short.small.given_up.wait(DEADLINE_S)


@pytest.mark.parametrize("path", ["/late", "/stream"])
def test_long_answers_and_streams_are_not_cut_off(path: str) -> None:
    with answering(SHORT) as address, address.connect() as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        # Two that are cut off tell that the limits are over for this one too.
        for _ in range(2):
            with address.connect(HALF) as cut:
                assert whole(cut) == b""
        address.small.go_on.set()
        assert b"la" in whole(raw)


def test_a_connection_is_used_again() -> None:
    with answering(ConnectionLimits()) as address, address.connect() as raw:
        for _ in range(3):
            raw.sendall(HALF + b"x\r\n\r\n")
            assert one_answer(raw).endswith(b'{"status":"ok"}')


def test_requests_that_come_at_once_are_answered_in_turn() -> None:
    with answering(ConnectionLimits()) as address, address.connect() as raw:
        raw.sendall((HALF + b"x\r\n\r\n") * 2 + HALF + REST)
        assert whole(raw).count(b'{"status":"ok"}') == 3


def test_others_are_answered_while_half_sent_requests_fill_all_places() -> None:
    limits = ConnectionLimits(head_s=DEADLINE_S, connections=8)
    with answering(limits) as address, ExitStack() as stack:
        late = stack.enter_context(address.connect(b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        assert address.small.begun.wait(DEADLINE_S)
        half = [stack.enter_context(address.connect(HALF)) for _ in range(40)]
        with address.client() as client:
            assert client.get("/healthz").status_code == 200
        assert whole(half[0]) == b""
        # What is being answered is never the one that goes.
        address.small.go_on.set()
        assert one_answer(late).endswith(b'{"status":"late"}')


def test_who_fills_all_places_takes_none_from_other_addresses() -> None:
    limits = ConnectionLimits(head_s=DEADLINE_S, connections=8)
    with answering(limits) as address, ExitStack() as stack:
        slow = stack.enter_context(address.connect(HALF))
        for _ in range(40):
            stack.enter_context(address.connect(HALF, source="127.0.0.2"))
        slow.sendall(REST)
        assert whole(slow).endswith(b'{"status":"ok"}')


def test_requests_of_one_address_that_are_being_answered_leave_places_for_others() -> None:
    with answering(ConnectionLimits(connections=8)) as address, ExitStack() as stack:
        late = b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n"
        held = [stack.enter_context(address.connect(late, source="127.0.0.2")) for _ in range(6)]
        assert all(address.small.each_begun.acquire(timeout=DEADLINE_S) for _ in held)
        with address.connect(late, source="127.0.0.2") as one_more:
            assert whole(one_more) == b""
        with address.client() as client:
            assert client.get("/healthz").status_code == 200
        address.small.go_on.set()
        assert all(one_answer(each).endswith(b'{"status":"late"}') for each in held)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
        b"<script>\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX :y\r\n\r\n",
        b"GET /" + b"x" * 300_000,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_not_repeated(sent: bytes) -> None:
    with answering(ConnectionLimits()) as address, address.connect() as raw:
        raw.sendall(sent)
        told = whole(raw)
        assert told.startswith(b"HTTP/1.1 400 ") or not told
        assert b"script" not in told


def test_nonsense_behind_a_request_ends_the_connection_without_a_word_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with answering(ConnectionLimits()) as address:
        head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        for nonsense in (b"nonsense\r\n\r\n", b"-1\r\n"):
            with address.connect(head) as raw:
                raw.recv(4_096)
                raw.sendall(nonsense)
                whole(raw)
        with address.connect(b"nonsense\r\n\r\n") as raw:
            whole(raw)
    assert not caplog.records


def test_nothing_is_upgraded_to_another_protocol() -> None:
    upgrade = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    with answering(ConnectionLimits()) as address:
        with address.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n") as raw:
            assert whole(raw).startswith(b"HTTP/1.1 200 ")
        with address.connect(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as raw:
            assert whole(raw)[:12] in {b"HTTP/1.1 404", b"HTTP/1.1 405"}
