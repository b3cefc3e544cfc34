"""Who may look: tokens, cookies, names of hosts."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.unit.observe.dashboard.serving import DEADLINE_S, Run, Served, serving

from tandem.errors import TandemError
from tandem.web.keys import Patience
from tandem.web.token import Token, read_token

TOKEN = "correct-horse-battery"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    run = Run(tmp_path_factory.mktemp("runs") / "secret")
    with serving([run.folder], token=TOKEN, is_local=False, patience=Patience(forgiven=1_000)) as server:
        yield server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving([tmp_path_factory.mktemp("runs")]) as server:
        yield server


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "path", ["/", "/api/runs", "/api/runs/secret/stream", "/assets/dashboard.js", "/metrics", "/nowhere"]
)
def test_without_the_token_nothing_is_told(closed: Served, path: str) -> None:
    assert closed.error(path)[0] == 401
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "ä"):
        assert closed.client.get(path, params={"token": wrong}).status_code == 403
    assert closed.error(path, headers=bearer("wrong"))[0] == 403
    assert closed.error(path, headers={"Cookie": f"{Token(TOKEN).cookie}=mark.wrong"})[0] == 403
    assert closed.error(path, headers={"Cookie": f"{Token(TOKEN).cookie}=wrong"})[0] == 401


def test_whoever_watches_over_the_server_needs_no_token(closed: Served) -> None:
    assert closed.client.get("/healthz").json() == {"status": "ok"}


def test_the_token_opens_as_a_header(closed: Served) -> None:
    assert closed.client.get("/api/runs", headers=bearer(TOKEN)).json()["runs"][0]["key"] == "secret"
    assert "tandem_step" in closed.client.get("/metrics", headers=bearer(TOKEN)).text


def test_the_token_in_an_address_becomes_a_cookie_and_leaves_the_address(closed: Served) -> None:
    with httpx.Client(base_url=closed.client.base_url, timeout=DEADLINE_S) as browser:
        answer = browser.get(f"/compare?runs=a%2Cb&token={TOKEN}&against=time")
        assert (answer.status_code, answer.headers["location"]) == (303, "/compare?runs=a%2Cb&against=time")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/api/runs").status_code == 200


@pytest.mark.parametrize("token", ['semicolon;"quotes"', "back\\slash,comma=%41", "=" * 20])
def test_a_token_of_any_marks_is_kept_in_a_cookie(tmp_path: Path, token: str) -> None:
    with serving([tmp_path], token=token, is_local=False) as server:
        assert (
            server.client.get("/api/runs", params={"token": token}, follow_redirects=True).status_code == 200
        )
        assert server.client.get("/api/runs").status_code == 200


@pytest.mark.timeout(30)
def test_no_cookie_takes_long_to_read(closed: Served) -> None:
    cookie = 'a="' + "\\" * 15_900 + '"'
    assert {closed.error("/", headers={"Cookie": cookie})[0] for _ in range(60)} == {401}


def test_the_way_back_never_leads_to_another_host(closed: Served) -> None:
    answer = httpx.get(f"{closed.client.base_url}//evil.example/?token={TOKEN}", timeout=DEADLINE_S)
    assert (answer.status_code, answer.headers["location"]) == (303, "/evil.example/")


def seen(closed: Served, path: str) -> httpx.Response:
    """As a browser asks for it."""
    return httpx.get(f"{closed.client.base_url}{path}", headers=BROWSER, timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [("/", 401, "A token is needed"), ("/?token=x", 403, "not one of this server")],
)
def test_a_browser_is_asked_for_the_token_by_a_page(
    closed: Served, path: str, status: int, sentence: str
) -> None:
    answer, told = seen(closed, path), closed.client.get(path)
    assert (answer.status_code, told.status_code) == (status, status)
    assert answer.headers["content-type"].startswith("text/html")
    assert sentence in answer.text
    assert 'name="token"' in answer.text
    assert told.headers["content-type"] == "application/json"
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"):
        assert answer.headers[name] == told.headers[name]
    assert (answer.headers["vary"], told.headers["vary"]) == ("Accept", "Accept")


def test_the_page_for_the_token_keeps_the_address_and_echoes_nothing_as_markup(closed: Served) -> None:
    page = seen(closed, "/compare?runs=a%2Cb&%22%3E%3Cb%3E=%22%3E%3Cscript%3E&token=%3Ci%3E").text
    assert '<input type="hidden" name="runs" value="a,b">' in page
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;i&gt;" not in page
    assert "action=" not in seen(closed, "//evil.example/").text
    assert "evil.example" not in seen(closed, "//evil.example/").text


def test_a_token_that_was_pasted_with_spaces_fits(closed: Served) -> None:
    answer = seen(closed, f"/?token=+{TOKEN}+")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1.evil.example"],
)
def test_a_foreign_name_that_leads_here_is_refused(local: Served, host: str) -> None:
    status, sentence = local.error("/api/runs", headers={"Host": host})
    assert status == 403
    assert "localhost only" in sentence


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:6007", "127.0.0.1:6007", "127.0.0.2", "[::1]:6007", "tandem.localhost"]
)
def test_names_of_this_machine_are_answered(local: Served, host: str) -> None:
    assert local.client.get("/api/runs", headers={"Host": host}).status_code == 200


def test_a_token_is_read_from_the_first_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\nsecond line\n", encoding="utf-8")
    path.chmod(0o600)
    assert read_token(path) == TOKEN


@pytest.mark.parametrize("text", ["", "short", "two words of many letters", "ä" * 20, "\n" + TOKEN])
def test_what_is_no_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(TandemError, match="is no token: write at least 16"):
        read_token(path)


def test_a_token_that_is_made_is_long_and_new_each_time() -> None:
    made = {read_token(None) for _ in range(10)}
    assert len(made) == 10
    assert min(map(len, made)) >= 32


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def test_who_has_been_let_in_stays_while_others_guess(tmp_path: Path) -> None:
    with serving([tmp_path], token=TOKEN, is_local=False, patience=Patience(forgiven=0)) as server:
        address = server.client.base_url
        with httpx.Client(base_url=address) as browser, httpx.Client(base_url=address) as other:
            assert browser.get("/", params={"token": TOKEN}, follow_redirects=True).status_code == 200
            told = [other.get("/", params={"token": f"guess {number}"}).status_code for number in range(3)]
            assert told == [403, 429, 429]
            assert browser.get("/").status_code == 200
            assert browser.get(f"/compare?token={TOKEN}&runs=a").headers["location"] == "/compare?runs=a"
            # What opens is no word that could be guessed by way of a cookie: that of the token is a guess like others.
            guess = {"Cookie": f"{Token(TOKEN).cookie}=.{TOKEN}"}
            assert other.get("/", headers=guess).status_code == 429


def test_a_cookie_outlives_the_server_that_gave_it(tmp_path: Path) -> None:
    with serving([tmp_path], token=TOKEN, is_local=False) as server:
        cookie = server.client.get("/", params={"token": TOKEN}).headers["set-cookie"].partition(";")[0]
    with serving([tmp_path], token=TOKEN, is_local=False) as server:
        assert server.client.get("/api/runs", headers={"Cookie": cookie}).status_code == 200


def test_a_token_to_which_another_site_leads_is_neither_looked_at_nor_counted(tmp_path: Path) -> None:
    with serving([tmp_path], token=TOKEN, is_local=False, patience=Patience(forgiven=0)) as server:
        for token in ["wrong"] * 10 + [TOKEN]:
            answer = server.client.get("/", params={"token": token}, headers={**BROWSER, **LINK})
            assert answer.status_code == 401
            assert "Another site" in answer.text
        own = {**BROWSER, **LINK, "Sec-Fetch-Site": "none"}
        assert server.client.get("/", params={"token": TOKEN}, headers=own).status_code == 303
