"""What both servers refuse before anything else, and the headers of all that they answer."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.strangers import NOBODY
from tests.unit.observe.dashboard.serving import Run
from tests.unit.observe.dashboard.serving import serving as dashboard
from tests.unit.serve.fake import Fake, running, served
from tests.unit.web.serving import DEADLINE_S, whole

from tandem.serve.app import Service

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.fixture(scope="module", params=["dashboard", "serve"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    with ExitStack() as stack:
        if request.param == "dashboard":
            run = Run(tmp_path_factory.mktemp("runs") / "first")
            yield stack.enter_context(dashboard([run.folder])).client
        else:
            yield stack.enter_context(running(served(Fake()))).client


def raw_answer(client: httpx.Client, sent: str) -> bytes:
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), DEADLINE_S) as raw:
        raw.sendall(sent.encode())
        return whole(raw)


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/nowhere"])
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_answer_and_every_refusal_has_the_headers_that_browsers_heed(
    client: httpx.Client, path: str, host: str
) -> None:
    headers = client.get(path, headers={"Host": host}).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers


def test_a_failure_has_them_too_and_tells_nothing_of_its_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(Service, "health", fail)
    with running(served(Fake())) as server:
        answer = server.client.get("/healthz")
    assert answer.status_code == 500
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "secret" not in answer.text
    assert [*answer.json()] == ["error"]


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/" + "x" * 9_000, "", 414),
        ("/?" + "a=b&" * 2_500, "", 414),
        ("/", "X-Long: " + "x" * 17_000 + "\r\n", 431),
        ("/", "".join(f"X-{number}: y\r\n" for number in range(150)), 431),
    ],
)
def test_addresses_and_headers_beyond_all_use_are_refused(
    client: httpx.Client, target: str, headers: str, status: int
) -> None:
    told = raw_answer(
        client, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
    )
    # The parser of requests has a bound of its own for a head that comes in pieces.
    assert told.startswith((f"HTTP/1.1 {status} ".encode(), b"HTTP/1.1 400 "))
    assert b"xxxx" not in told


def test_a_request_that_a_proxy_may_read_as_two_is_refused(client: httpx.Client) -> None:
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = raw_answer(client, head + "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 400 ")
    assert told.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "target", ["/..%2f..%2fetc%2fpasswd", "/%2e%2e/etc/passwd", "/%00", "/%ff%fe", "//etc/passwd"]
)
def test_no_path_leads_out(client: httpx.Client, target: str) -> None:
    told = raw_answer(client, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 404 ")


def test_files_of_the_page_are_sent_once(client: httpx.Client) -> None:
    path = "/translate.css" if client.get("/translate.css").is_success else "/assets/stylesheet.css"
    answer = client.get(path)
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


GUESS = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
for number in range(7):
    connection = socket.socket()
    connection.connect(("127.0.0.1", int(sys.argv[1])))
    connection.sendall(b"GET /api/runs?token=guess HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
    print(connection.makefile("rb").readline().split()[1].decode())
"""


def test_a_token_is_guessed_slowly_also_from_other_addresses_of_the_host(tmp_path: Path) -> None:
    with dashboard([tmp_path], token="a-token-of-enough-length", is_local=False) as server:
        told = [server.client.get("/api/runs", params={"token": f"guess {number}"}) for number in range(7)]
        assert [each.status_code for each in told] == [403] * 6 + [429]
        assert int(told[-1].headers["retry-after"]) >= 1
        other = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=server.client.base_url, transport=other, timeout=DEADLINE_S) as client:
            headers = {"Authorization": "Bearer a-token-of-enough-length"}
            assert client.get("/api/runs", headers=headers).status_code == 429


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_host_who_guesses_keeps_nobody_else_out(tmp_path: Path) -> None:
    with dashboard([tmp_path], token="a-token-of-enough-length", is_local=True) as server:
        words = [sys.executable, "-I", "-c", GUESS, str(server.client.base_url.port), str(NOBODY)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/")
        assert done.stdout.split() == ["403"] * 6 + ["429"]
        headers = {"Authorization": "Bearer a-token-of-enough-length"}
        assert server.client.get("/api/runs", headers=headers).status_code == 200


def test_a_key_is_guessed_slowly_in_the_header_and_in_the_body() -> None:
    with running(served(Fake()), keys=["a-right-key"]) as server:
        for number in range(6):
            assert server.post(text="a", api_key=f"guess {number}").status_code == 403
        headers = {"Authorization": "Bearer a-right-key"}
        assert server.client.post("/translate", json={"text": "a"}, headers=headers).status_code == 429
        assert server.post(text="a", api_key="a-right-key").status_code == 429
        assert server.post(text="a").status_code == 401


@pytest.mark.parametrize(("is_behind_proxy", "status"), [(True, 200), (False, 429)])
def test_clients_are_told_apart_by_a_proxy_only_where_there_is_one(
    *, is_behind_proxy: bool, status: int
) -> None:
    with running(served(Fake()), keys=["a-right-key"], is_behind_proxy=is_behind_proxy) as server:
        for number in range(6):
            headers = {"Authorization": f"Bearer guess-{number}", "X-Forwarded-For": "198.51.100.1"}
            assert server.client.post("/translate", json={"text": "a"}, headers=headers).status_code == 403
        headers = {"Authorization": "Bearer a-right-key", "X-Forwarded-For": "198.51.100.1, 192.0.2.7"}
        assert server.client.post("/translate", json={"text": "a"}, headers=headers).status_code == status


def test_a_wrong_key_is_refused_before_its_body_has_come() -> None:
    with running(served(Fake()), keys=["a-right-key"]) as server:
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\nConnection: close\r\n"
        told = raw_answer(server.client, f"{head}Content-Length: 100000\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 403 ")
