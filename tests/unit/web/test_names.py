"""By which names and from whose pages the server that translates is used, over real connections."""

from collections.abc import Iterator, Mapping

import pytest
from starlette.datastructures import Headers
from tests.unit.serve.fake import Fake, Running, running, served

from tandem.errors import TandemError
from tandem.web.names import Names, check_names

TEXT = {"text": "a"}
CROSS = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
FRAME = {**LINK, "Sec-Fetch-Dest": "iframe"}


@pytest.fixture(scope="module")
def local() -> Iterator[Running]:
    with running(served(Fake())) as server:
        yield server


@pytest.fixture(scope="module")
def outward() -> Iterator[Running]:
    with running(served(Fake()), is_local=False) as server:
        yield server


def asked(server: Running, headers: Mapping[str, str]) -> int:
    return server.client.post("/translate", json=TEXT, headers=headers).status_code


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "192.168.0.1", "127.0.0.1.evil.example"]
)
@pytest.mark.parametrize("path", ["/", "/models", "/metrics", "/healthz"])
def test_a_foreign_name_that_leads_here_is_refused(local: Running, host: str, path: str) -> None:
    answer = local.client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert "localhost only" in answer.json()["error"]
    assert asked(local, {"Host": host, "Origin": f"http://{host}"}) == 403


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "127.9.9.9", "[::1]:80", "x.localhost"]
)
def test_names_of_this_machine_are_answered(local: Running, host: str) -> None:
    assert asked(local, {"Host": host}) == 200
    assert asked(local, {"Host": host, "Origin": f"http://{host.lower()}"}) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:1", "Host": "localhost:2"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        LINK,
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
def test_nothing_is_translated_for_the_page_of_another_site(
    local: Running, headers: dict[str, str], kind: str
) -> None:
    answer = local.client.post(
        "/translate", content=b'{"text": "a"}', headers={**headers, "Content-Type": kind}
    )
    assert answer.status_code == 403
    assert "other sites" in answer.json()["error"]


def test_a_page_of_its_own_and_programs_use_it(local: Running) -> None:
    assert asked(local, {"Sec-Fetch-Site": "same-origin", "Origin": "null"}) == 200
    assert asked(local, {}) == 200
    form = {"q": "a", "source": "en", "target": "de"}
    assert local.client.post("/translate", data=form).json() == {"translatedText": "a!"}


def test_another_site_may_link_to_it_but_neither_frame_nor_load_it(local: Running) -> None:
    assert local.client.get("/", headers=LINK).status_code == 200
    assert local.client.get("/", headers=FRAME).status_code == 403
    assert local.client.get("/models", headers=CROSS).status_code == 403
    assert local.client.get("/models", headers={"Origin": "https://evil.example"}).status_code == 403


def test_pages_that_were_named_may_use_it_and_are_told_so() -> None:
    named = "https://mine.example"
    with running(served(Fake()), origins=[named]) as server:
        headers = {"Origin": named, "Sec-Fetch-Site": "cross-site"}
        assert asked(server, headers) == 200
        asking = {**headers, "Access-Control-Request-Method": "POST"}
        assert server.client.options("/translate", headers=asking).status_code == 200
        foreign = server.client.options("/translate", headers={**asking, "Origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize("host", ["10.0.0.1:8000", "[2001:db8::1]:8000", "translate:8000", "localhost"])
def test_beyond_this_machine_its_own_pages_use_it_by_address_or_by_a_name_of_the_network(
    outward: Running, host: str
) -> None:
    assert asked(outward, {"Host": host, "Origin": f"http://{host}"}) == 200
    assert asked(outward, {"Host": host, "Origin": "https://evil.example"}) == 403


def test_beyond_this_machine_a_page_by_a_name_that_anyone_may_lead_here_is_refused(outward: Running) -> None:
    rebound = {"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}
    answer = outward.client.post("/translate", json=TEXT, headers=rebound)
    assert answer.status_code == 403
    assert "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/", "/models", "/metrics", "/languages", "/openapi.json"])
def test_what_a_browser_reads_by_such_a_name_without_a_mark_is_refused(outward: Running, path: str) -> None:
    assert outward.client.get(path, headers={"Host": "evil.example:8000"}).status_code == 403
    assert outward.client.get(path, headers={"Host": "10.0.0.1:8000"}).status_code == 200


def test_keys_open_no_path_to_a_name_that_anyone_may_lead_here() -> None:
    with running(served(Fake()), is_local=False, keys=["a-right-key"]) as server:
        assert server.client.get("/models", headers={"Host": "evil.example"}).status_code == 403
        assert server.client.get("/models", headers={"Host": "[2001:db8::1]:80"}).status_code == 200


def test_this_machine_has_its_full_name_too_and_nobody_else_a_name_like_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tandem.web.names.socket.gethostname", lambda: "Node7")
    monkeypatch.setattr("tandem.web.names._full_name", lambda: "node7.cluster.example")
    names = Names(is_local=False)
    hosts = ["node7", "node7.local", "node7.cluster.example:80", "node7.evil.example", "cluster.example"]
    refused = [host for host in hosts if names.refusal("GET", Headers({"host": host}))]
    assert refused == ["node7.evil.example", "cluster.example"]


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({"host": "translate.example"}, True),
        ({"host": "TRANSLATE.example:443", "origin": "https://translate.example"}, True),
        ({"host": "127.0.0.1:8000", "origin": "https://translate.example"}, True),
        ({"host": "127.0.0.1:8000", "origin": "https://translate.example:444"}, False),
        ({"host": "127.0.0.1:8000", "origin": "https://evil.example"}, False),
        ({"host": "evil.example"}, False),
    ],
)
@pytest.mark.parametrize("is_local", [True, False])
def test_behind_a_proxy_its_name_is_as_good_as_localhost(
    headers: dict[str, str], *, is_let_in: bool, is_local: bool
) -> None:
    names = Names(is_local=is_local, allowed=["translate.example"])
    assert (names.refusal("POST", Headers(headers)) is None) is is_let_in


@pytest.mark.parametrize("name", ["https://a.example", "a.example/", "", "*", "a b", "a.example:http"])
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(TandemError, match="is not the name of a host"):
        check_names([name])


def test_names_of_hosts_have_ports_where_they_need_them() -> None:
    check_names(["a.example", "a.example:8443", "192.0.2.1", "[2001:db8::1]:80"])
