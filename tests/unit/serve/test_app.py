"""The API over real HTTP: both formats, every refusal, and what does not go wrong."""

import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.unit.serve.fake import DEADLINE_S, Fake, Running, running, served

from tandem.serve.limits import Limits
from tandem.translate.translator import Translation
from tandem.translate.wish import Wish

LIMITS = Limits(characters=2_000, sentences=50, queue=4, deadline_s=30)


@pytest.fixture(scope="module")
def fake() -> Fake:
    return Fake()


@pytest.fixture(scope="module")
def server(fake: Fake) -> Iterator[Running]:
    with running(served(fake), limits=LIMITS, guess=lambda _text, _among: ("en", 0.875)) as started:
        yield started


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until
        threading.Event().wait(0.005)


def error_of(answer: httpx.Response) -> str:
    """The sentence of a refusal."""
    assert [*answer.json()] == ["error"]
    sentence = answer.json()["error"]
    assert sentence.endswith(".")
    return str(sentence)


def test_one_text_is_translated(server: Running) -> None:
    answer = server.post(text="a b c", source="en", target="de")
    assert answer.status_code == 200
    assert answer.json() == {
        "model": "small",
        "source": "en",
        "target": "de",
        "translations": [{"text": "c! b! a!", "score": -1.5}],
    }


def test_many_texts_keep_their_order_and_their_line_breaks(server: Running) -> None:
    told = server.post(text=["a b", "", "c\n\nd e\r\nf"]).json()["translations"]
    assert [each["text"] for each in told] == ["b! a!", "", "c!\n\ne! d!\nf!"]
    assert server.post(text=[]).json()["translations"] == []


def test_the_best_translations_and_their_scores_are_told(server: Running) -> None:
    (told,) = server.post(text="a\nb", best=3).json()["translations"]
    assert [each["text"] for each in told["others"]] == ["a! 1\nb! 1", "a! 2\nb! 2"]
    assert [each["score"] for each in told["others"]] == [-4.0, -6.0]


def test_alignment_counts_characters_of_the_whole_text(server: Running) -> None:
    text = "ab c\r\n\n😀 d"
    (told,) = server.post(text=text, alignment=True).json()["translations"]
    pairs = {
        (text[slice(*each["source"])], told["text"][slice(*each["target"])]) for each in told["alignment"]
    }
    assert pairs == {("ab", "ab!"), ("c", "c!"), ("😀", "😀!"), ("d", "d!")}


def test_a_request_says_how_to_search(server: Running, fake: Fake) -> None:
    server.post(text="searched", beam=2, best=5, length_penalty=1)
    wish = next(wish for lines, wish in fake.batches if lines == ["searched"])
    assert (wish.beam, wish.best, wish.penalty.alpha) == (5, 5, 1.0)


def test_libretranslate_clients_get_what_they_know(server: Running) -> None:
    asked: dict[str, Any] = {
        "q": "a b",
        "source": "en",
        "target": "de",
        "format": "text",
        "api_key": "",
    }
    assert server.post(**asked).json() == {"translatedText": "b! a!"}
    assert server.post(**{**asked, "q": ["a", "b"], "secret": "x"}).json() == {"translatedText": ["a!", "b!"]}
    assert server.post(**asked, alternatives=2).json()["alternatives"] == ["b! a! 1", "b! a! 2"]
    found = server.post(**{**asked, "source": "auto"}).json()
    assert found["detectedLanguage"] == {"language": "en", "confidence": 87.5}


def test_libretranslate_forms_are_read(server: Running) -> None:
    asked = {"q": "ä b", "source": "en", "target": "de", "alternatives": "1"}
    answer = server.client.post("/translate", data=asked).json()
    assert answer == {"translatedText": "b! ä!", "alternatives": ["b! ä! 1"]}
    assert server.client.post("/translate", data={**asked, "alternatives": "many"}).status_code == 422


def test_libretranslate_forms_in_parts_are_read(server: Running) -> None:
    asked = {"q": "ä b", "source": "en", "target": "de", "alternatives": "1"}
    parts: dict[str, tuple[None, str]] = {name: (None, value) for name, value in asked.items()}
    answer = server.client.post("/translate", files=parts)
    assert answer.json() == {"translatedText": "b! ä!", "alternatives": ["b! ä! 1"]}
    assert server.client.post("/detect", files={"q": (None, "a")}).json()[0]["language"] == "en"
    refused = server.client.post("/translate", files={**parts, "q": ("q.txt", "a")})
    assert refused.status_code == 422
    assert error_of(refused) == "q is a file: send its text as a field."
    assert server.client.post("/translate", files={**parts, "q": (None, "a" * 2_001)}).status_code == 413


def html_answer(server: Running, q: str | list[str], **fields: Any) -> httpx.Response:
    return server.post(q=q, format="html", **{"source": "en", "target": "de", **fields})


def test_of_html_the_text_is_translated(server: Running) -> None:
    html = '<p class="x">a <b>b</b> c</p><script>d</script>'
    translated = '<p class="x">c! <b>b!</b> a!</p><script>d</script>'
    assert html_answer(server, html).json() == {"translatedText": translated}
    assert html_answer(server, [html, "", "<hr>"]).json() == {"translatedText": [translated, "", "<hr>"]}
    form = {"q": html, "source": "en", "target": "de", "format": "html"}
    assert server.client.post("/translate", data=form).json() == {"translatedText": translated}


def test_other_translations_of_html_have_its_markup(server: Running) -> None:
    answer = html_answer(server, "<p>a &amp; b</p><p>c</p><hr>", alternatives=2).json()
    assert answer == {
        "translatedText": "<p>b! &amp;! a!</p><p>c!</p><hr>",
        "alternatives": [f"<p>b! &amp;! a! {rank}</p><p>c! {rank}</p><hr>" for rank in (1, 2)],
    }
    assert html_answer(server, "<hr>", alternatives=2).json() == {
        "translatedText": "<hr>",
        "alternatives": [],
    }


def test_the_language_of_html_is_that_of_its_text() -> None:
    seen: list[str] = []

    def guess(text: str, _among: Collection[str]) -> tuple[str, float]:
        seen.append(text)
        return "en", 0.5

    with running(served(Fake()), guess=guess) as started:
        answer = html_answer(started, '<p title="c">a</p> <code>d</code>', source="auto").json()
    assert seen == ["a"]
    assert answer["detectedLanguage"] == {"language": "en", "confidence": 50.0}


@pytest.mark.parametrize(
    ("html", "says"),
    [
        ("<hr>" * 501, "2,004 characters"),
        ("<p>a" * 51, "51 texts between tags"),
        ("<p>a <b>b</b> c" * 13, "52 texts between tags"),
    ],
)
def test_limits_hold_for_html_as_a_whole(server: Running, html: str, says: str) -> None:
    answer = html_answer(server, html)
    assert answer.status_code == 413
    assert says in error_of(answer)


def test_a_long_line_of_html_is_no_long_line_of_text() -> None:
    with running(served(Fake())) as started:
        html = "<p>word</p>" * 500
        assert html_answer(started, html).json()["translatedText"] == "<p>word!</p>" * 500
        answer = html_answer(started, "<p>" + "a\n" * 2_501)
        assert answer.status_code == 413
        assert "A text between tags has 5,001 characters" in error_of(answer)


@pytest.mark.parametrize(
    "html", ["<", "<p", "</", "<!", "<![x[a]]>", "&#" + "9" * 1_900, "<a b='>", "\x00<\ufffd>", "<script>a"]
)
def test_malformed_html_is_translated_as_far_as_it_goes(server: Running, html: str) -> None:
    answer = html_answer(server, f"<p>a</p>{html}")
    assert answer.status_code == 200
    assert answer.json()["translatedText"].startswith("<p>a!</p>")


def test_json_that_is_called_a_form_is_read(server: Running) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = server.client.post("/translate", content='{"text": "a"}', headers=headers)
    assert answer.json()["translations"][0]["text"] == "a!"


def test_languages_and_models_are_listed(server: Running) -> None:
    assert server.client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    (model,) = server.client.get("/models").json()["models"]
    assert (model["name"], model["source_name"], model["target_name"]) == ("small", "English", "German")
    assert server.post("/detect", q="a").json() == [{"language": "en", "confidence": 87.5}]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b'{"text": "\xff"}', 400, "not UTF-8"),
        (b'{"text": NaN}', 400, "JSON"),
        (b"[" * 20_000, 400, "JSON"),
        (b'{"text": ' + b"9" * 5_000 + b"}", 400, "JSON"),
        (b"[]", 422, "JSON object"),
        (b"{}", 422, "text is missing"),
        (b'{"text": 5}', 422, "text is wrong"),
        (b'{"text": ["a", null]}', 422, "text is wrong"),
        (b'{"text": "a", "beam": 0}', 422, "beam is wrong"),
        (b'{"text": "a", "beam": 9}', 422, "beam is wrong"),
        (b'{"text": "a", "best": 9}', 422, "best is wrong"),
        pytest.param(b'{"text": [' + b"1," * 20_000 + b"1]}", 413, "20,001 texts", id="numbers"),
        (b'{"q": [1, "a"], "source": "en", "target": "de"}', 422, "q is wrong: a list may hold texts only"),
        pytest.param(
            json.dumps(dict.fromkeys(map(str, range(5_000)), 1)).encode(), 422, "5,000 fields", id="fields"
        ),
        (b'{"text": "a", "beam": true}', 422, "beam is wrong"),
        (b'{"text": "a", "length_penalty": 1e999}', 422, "length_penalty is wrong"),
        (b'{"text": "a", "temperature": 1}', 422, "no field 'temperature'"),
        (b'{"text": "a", "\\ud800": 1}', 422, "no field"),
        (b'{"text": "a", "target": "fr"}', 422, "only small (en to de)"),
        (b'{"text": "a", "source": "de", "target": "en"}', 422, "only small"),
        (b'{"text": "a", "model": "other"}', 422, "only small"),
        (b'{"q": "a", "source": "auto", "target": "fr"}', 422, "only small"),
        (b'{"q": "a", "source": "en", "target": "de", "format": "xml"}', 422, "format is wrong"),
        (b'{"text": "unspeakable"}', 422, "This cannot be said: say something else."),
        (json.dumps({"text": "a" * 2_001}).encode(), 413, "2,001 characters"),
        (json.dumps({"text": "a" * 2_001}).encode(), 413, "larger --most-characters"),
        (json.dumps({"text": "\n" * 50}).encode(), 413, "51 lines"),
        (json.dumps({"text": "\n" * 50}).encode(), 413, "larger --most-sentences"),
        (json.dumps({"text": "a" * 1_000_000}).encode(), 413, "longer than"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(server: Running, body: bytes, status: int, says: str) -> None:
    answer = server.client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert says in error_of(answer)
    assert server.post(text="a").status_code == 200


def test_a_line_that_would_hold_up_all_others_is_refused() -> None:
    with running(served(Fake())) as started:
        assert started.post(text="a " * 2_500 + "\n" + "b " * 2_500).status_code == 200
        assert started.post(text="a" * 5_000).status_code == 200
        answer = started.post(text="a" * 5_001)
        assert answer.status_code == 413
        assert "A line has 5,001 characters, but one may have 5,000: break it between" in error_of(answer)


@pytest.mark.parametrize("depth", [50, 300, 500, 900, 2_000])
def test_brackets_in_brackets_are_refused_at_any_depth(server: Running, depth: int) -> None:
    answer = server.client.post("/translate", content=b'{"text":' + b"[" * depth + b"]" * depth + b"}")
    assert answer.status_code in {400, 422}
    assert error_of(answer)


@pytest.mark.parametrize(
    ("given", "translated"),
    [
        ("\ud800 b", "b! \ufffd!"),
        ("a\x00b\x1b", "a\x00b\x1b!"),
        ("  ", ""),
        ("\u2028", ""),
        ("a\rb", "a!\nb!"),
    ],
)
def test_odd_characters_do_no_harm(server: Running, given: str, translated: str) -> None:
    answer = server.client.post("/translate", content=json.dumps({"text": given}))
    assert answer.json()["translations"][0]["text"] == translated


def test_a_body_of_another_kind_is_refused(server: Running) -> None:
    answer = server.client.post("/translate", content=b"<a/>", headers={"Content-Type": "text/xml"})
    assert answer.status_code == 415
    assert "application/json" in error_of(answer)


def test_what_is_not_there_is_said_in_a_sentence(server: Running) -> None:
    assert (server.client.get("/nothing").status_code, server.client.get("/translate").status_code) == (
        404,
        405,
    )
    assert "/openapi.json" in error_of(server.client.get("/nothing"))
    assert server.client.get("/translate").headers["allow"] == "POST"


def test_a_failure_of_ours_is_told_without_its_inside(server: Running) -> None:
    answer = server.post(text="broken")
    assert answer.status_code == 500
    assert "division" not in error_of(answer)
    assert "failed: ZeroDivisionError: division by zero" in server.said


def test_a_full_queue_says_when_to_come_again(server: Running, fake: Fake) -> None:
    fake.open.clear()
    try:
        with ThreadPoolExecutor() as pool:
            before = len(fake.batches)
            first = pool.submit(server.post, text="first")
            wait_until(lambda: len(fake.batches) > before)
            waiting = pool.submit(server.post, text="1\n2\n3\n4")
            wait_until(lambda: 'queue_lines{model="small"} 4' in server.client.get("/metrics").text)
            refused = server.post(text="more")
            fake.open.set()
            assert (first.result().status_code, waiting.result().status_code) == (200, 200)
    finally:
        fake.open.set()
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert "try again" in error_of(refused)


def test_a_request_whose_client_is_gone_is_not_translated(server: Running, fake: Fake) -> None:
    fake.open.clear()
    try:
        with ThreadPoolExecutor() as pool:
            before = len(fake.batches)
            first = pool.submit(server.post, text="first")
            wait_until(lambda: len(fake.batches) > before)
            url = server.client.base_url
            with socket.create_connection((url.host, url.port or 0)) as raw:
                body = b'{"text": "nobody waits for this"}'
                head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                raw.sendall(head.encode() + body)
                wait_until(lambda: 'queue_lines{model="small"} 1' in server.client.get("/metrics").text)
            wait_until(lambda: 'queue_lines{model="small"} 0' in server.client.get("/metrics").text)
            fake.open.set()
            assert first.result().status_code == 200
    finally:
        fake.open.set()
    assert server.post(text="next").status_code == 200
    assert not any("nobody waits for this" in lines for lines, _ in fake.batches)
    assert "tandem_requests_gone_total 1\n" in server.client.get("/metrics").text


def test_answers_carry_headers_that_browsers_heed(server: Running) -> None:
    for path in ("/", "/translate.js", "/models", "/nothing"):
        headers = server.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_requests_are_told_in_short_lines_without_what_they_made_up(server: Running) -> None:
    server.client.post("/made%0Aup")
    wait_until(lambda: any(line.startswith("other 404 ") for line in server.said))  # said after the answer
    assert not any("made" in line for line in server.said)


def test_a_draining_server_is_not_ready_and_closes_connections(server: Running) -> None:
    assert server.client.get("/readyz").json() == {"status": "ready"}
    server.service.is_draining = True
    try:
        answer = server.client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["connection"] == "close"
        assert server.client.get("/healthz").status_code == 200
        assert server.post(text="a").json()["translations"][0]["text"] == "a!"
    finally:
        server.service.is_draining = False


class Mute(Fake):
    """Gives fewer translations than there are lines, which no engine does."""

    def translate(self, lines: Sequence[str], wish: Wish) -> list[Translation]:
        return super().translate(lines, wish)[1:]


def test_a_server_that_translates_no_more_is_not_ready() -> None:
    with running(served(Mute())) as server, ThreadPoolExecutor() as pool:
        asked = pool.submit(httpx.post, f"{server.client.base_url}/translate", json={"text": "a"}, timeout=1)
        wait_until(lambda: server.client.get("/readyz").status_code == 503)
        assert asked.exception() is not None


def test_what_was_counted_is_told(server: Running) -> None:
    server.post(text="a b")
    counted = 'tandem_requests_total{path="/translate",status="200"}'
    wait_until(lambda: counted in server.client.get("/metrics").text)
    lines = server.client.get("/metrics").text.splitlines()
    figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(figures['tandem_translated_pieces_total{model="small"}']) >= 2
    assert figures["tandem_translate_seconds_count"] == figures['tandem_translate_seconds_bucket{le="+Inf"}']
    assert int(figures[counted]) >= 1
    assert float(figures["process_resident_memory_bytes"]) > 1e6


def test_a_deadline_is_kept(fake: Fake) -> None:
    slow = Fake()
    slow.open.clear()
    with running(served(slow), limits=Limits(deadline_s=0.05)) as server:
        answer = server.post(text="late")
        slow.open.set()
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "0.05 s" in error_of(answer)


def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    with running(served(Fake()), limits=Limits(deadline_s=0.05)) as server:
        url = server.client.base_url
        with socket.create_connection((url.host, url.port or 0), timeout=DEADLINE_S) as raw:
            raw.sendall(b'POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"text"')
            assert raw.recv(64).startswith(b"HTTP/1.1 408 ")


def test_keys_open_the_server() -> None:
    with running(served(Fake()), keys=["a-long-key", "another-key"]) as server:
        assert server.post(text="a").status_code == 401
        assert server.post(text="a").headers["www-authenticate"] == "Bearer"
        assert server.post(text="a", api_key="wrong-key").status_code == 403
        assert server.post(text="a", api_key="another-key").status_code == 200
        assert server.post("/detect", q="a").status_code == 401
        bearer = {"Authorization": "Bearer a-long-key"}
        assert server.client.post("/translate", json={"text": "a"}, headers=bearer).status_code == 200
        assert server.client.get("/models").status_code == 200


def test_only_origins_that_were_named_may_use_it_from_a_browser() -> None:
    with running(served(Fake()), origins=["https://mine.example"]) as server:
        for origin, allowed in (
            ("https://mine.example", "https://mine.example"),
            ("https://b.example", None),
        ):
            answer = server.client.post("/translate", json={"text": "a"}, headers={"Origin": origin})
            assert answer.headers.get("access-control-allow-origin") == allowed


def test_several_models_are_chosen_by_name_or_languages() -> None:
    models = (
        served(Fake(mark="1"), name="first"),
        served(Fake(mark="2"), name="second"),
        served(Fake(mark="3"), name="french", languages=("fr", "de")),
    )
    with running(*models) as server:

        def told(**fields: str) -> str:
            answer = server.post(text="a", **fields)
            return (
                str(answer.json()["translations"][0]["text"])
                if answer.status_code == 200
                else error_of(answer)
            )

        assert told(source="en", target="de") == "a1"
        assert told(model="second") == "a2"
        assert told(source="fr") == "a3"
        assert told(target="de").startswith("Say source and target, or model")
        answer = server.post(q="a", source="auto", target="de")
        assert answer.status_code == 422
        assert "cannot tell languages" in error_of(answer)
        assert server.post("/detect", q="a").status_code == 404
