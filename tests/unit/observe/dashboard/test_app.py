"""The dashboard over real HTTP: every path, every refusal, and what a stream tells."""

import re
import shutil
import socket
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from tests.unit.observe.dashboard.serving import (
    DEADLINE_S,
    Run,
    Served,
    serving,
    threads_of,
    wait_until,
)
from tests.unit.observe.story import finished, started

from tandem.observe import dashboard
from tandem.observe.dashboard import app, drawing, follower
from tandem.observe.figures import FIGURES
from tandem.observe.figures.look import Figure
from tandem.observe.series.columns import Series
from tandem.observe.series.live import LiveSeries
from tandem.observe.verdicts import QUESTIONS
from tandem.observe.verdicts.sections import section_html
from tandem.observe.watch.progress import numbers_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import RunFinished, WorkersLost


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        Run(folder / name)
    return folder


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[Served]:
    with serving([runs]) as server:
        yield server


def last_x(note: dict[str, Any]) -> float:
    return float(note["figure"]["data"][0]["x"][-1])


def test_the_page_is_the_same_for_every_run_and_loads_only_from_here(served: Served) -> None:
    page = served.client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert served.client.get("/run/first").content == page.content
    assert served.client.get("/compare?runs=first,second").content == page.content
    for name in ("dashboard.js", "dashboard.css", "stylesheet.css", "plotly.js"):
        asset = served.client.get(f"/assets/{name}")
        assert asset.status_code == 200
        again = served.client.get(f"/assets/{name}", headers={"If-None-Match": asset.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_every_section_of_the_help_can_be_opened(served: Served) -> None:
    for question in QUESTIONS:
        section = served.client.get(f"/assets/section-{question.key}.html")
        assert section.status_code == 200
        assert f"<h4>{question.number}. {escape(question.question)} " in section.text
        assert "(docs/verdicts.md)" in section.text
        assert section.text.endswith(section_html(question.key))
    assert len({served.client.get(f"/assets/section-{each.key}.html").text for each in QUESTIONS}) == 11


def test_every_tile_and_every_column_of_the_evaluations_is_explained(served: Served) -> None:
    tiles = served.client.get("/assets/terms-numbers.html").text
    assert re.findall("<b>(.*?)</b>", tiles) == list(numbers_of(WatchState()))
    columns = served.client.get("/assets/terms-evaluations.html").text
    table = served.client.get("/assets/tables.js").text
    assert all(f'"{name}"' in table for name in re.findall("<b>(.*?)</b>", columns))


@pytest.mark.parametrize("path", ["/nowhere", "/api/runs/%3Cb%3E/stream", "/assets/nothing.js"])
def test_a_browser_at_a_wrong_address_gets_a_page_and_a_program_json(served: Served, path: str) -> None:
    page = served.client.get(path, headers={"Accept": "text/html;q=0.9, */*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert '<a href="/">To the runs</a>' in page.text
    assert "<b>" not in page.text
    for accepted in ("*/*", "application/json", "text/event-stream", ""):
        told = served.client.get(path, headers={"Accept": accepted})
        assert (told.status_code, list(told.json())) == (404, ["error"])
        assert told.headers["content-security-policy"] == page.headers["content-security-policy"]


def test_every_answer_has_the_headers_that_browsers_heed(served: Served) -> None:
    for path in ("/", "/healthz", "/api/runs", "/nowhere"):
        headers = served.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_runs_are_listed_with_where_they_stand(served: Served) -> None:
    listed = served.client.get("/api/runs").json()["runs"]
    assert [each["key"] for each in listed] == ["first", "second"]
    one = listed[0]
    assert (one["name"], one["step"], one["share"]) == ("first", 40, 0.04)
    assert one["best_bleu"] > 0
    assert one["text"] == "step 40 of 1,000"
    with served.page("first") as page:
        page.next()
        followed = served.client.get("/api/runs").json()["runs"][0]
    # These go by the clock.
    timed = dict.fromkeys(("status", "doing", "is_silent", "left_s"))
    assert {**followed, **timed} == {**one, **timed}


def test_metrics_name_every_run(served: Served) -> None:
    answer = served.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'tandem_step{run="first"} 40' in answer.text
    assert 'run="second"' in answer.text


def test_a_stream_first_tells_everything(served: Served) -> None:
    with served.page("first", "losses", "bleu") as page:
        assert page.next()[0] == "state"
        told = page.until(lambda newest: {"findings", "figures", "log"} <= newest.keys())
    assert told["state"]["step"] == 40
    assert told["state"]["reading"] == 1
    assert told["state"]["progress"]["share"] == 0.04
    assert [each["name"] for each in told["state"]["numbers"]][:2] == ["epoch", "loss"]
    assert [each["step"] for each in told["state"]["evaluations"]] == [20, 40]
    assert told["state"]["samples"][0]["hypothesis"].startswith("Der Hafenmeister")
    assert set(page.figures) == {"losses", "bleu"}
    assert told["figure losses"]["title"] == "Losses"
    assert "training" in told["figure losses"]["alternative"]
    assert told["figures"]["names"][:2] == ["losses", "bleu"]
    assert [each["number"] for each in told["findings"]] == list(range(1, 12))
    assert {"about", "section", "evidence", "missing"} <= told["findings"][0].keys()
    assert told["log"]["from"] == 0
    assert told["log"]["lines"][0]["kind"] == "RunStarted"


def test_a_reconnection_is_told_everything_anew(served: Served) -> None:
    for _ in range(2):
        with served.page("second", "losses") as page:
            told = page.until(lambda newest: {"state", "figure losses", "log"} <= newest.keys())
            assert told["log"]["from"] == 0


def test_a_run_that_goes_on_restarts_and_ends_is_followed_in_one_stream(tmp_path: Path) -> None:
    run = Run(tmp_path / "live")
    with serving([run.folder]) as served, served.page("live", "losses") as page:
        page.until(lambda newest: {"figure losses", "log"} <= newest.keys())
        run.go_on(5)
        told = page.until(
            lambda newest: newest["state"]["step"] == 45 and last_x(newest["figure losses"]) > 44
        )
        before = told["log"]["from"] + len(told["log"]["lines"])
        run.tell(WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed"), rank=None)
        told = page.until(lambda newest: newest["state"]["doing"] == "restarting")
        page.until(lambda newest: newest["log"]["lines"][-1]["kind"] == "WorkersLost")
        assert told["log"]["from"] >= before
        run.step = 40
        run.tell(started(40))
        run.go_on(2)
        told = page.until(lambda newest: newest["state"]["step"] == 42)
        assert told["state"]["doing"] == "training"
        page.until(lambda newest: last_x(newest["figure losses"]) < 43)
        run.tell(finished(42))
        run.tell(RunFinished(reason="completed"), rank=None)
        told = page.until(lambda newest: newest["state"]["is_closed"])
        assert told["state"]["status"] == "finished: reached 42 steps, attempt 2"


def test_pages_share_what_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path / "shared")
    drawn: list[int] = []

    def draw(series: Series) -> Figure | None:
        drawn.append(len(series.steps))
        return FIGURES["losses"](series)

    monkeypatch.setattr(drawing, "FIGURES", {"losses": draw})
    with serving([run.folder]) as served, served.page("shared", "losses") as one:
        one.until(lambda newest: "findings" in newest)
        with served.page("shared", "losses") as other:
            other.until(lambda newest: {"figure losses", "findings"} <= newest.keys())
    assert drawn == [40]


def test_a_figure_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_series: Series) -> Figure | None:
        raise ZeroDivisionError

    monkeypatch.setattr(drawing, "FIGURES", {"losses": fail, "bleu": FIGURES["bleu"]})
    run = Run(tmp_path / "run")
    with serving([run.folder]) as served, served.page("run", "losses", "bleu") as page:
        told = page.until(lambda newest: {"figure losses", "figure bleu"} <= newest.keys())
    assert "could not be drawn (ZeroDivisionError" in told["figure losses"]["alternative"]


def test_nothing_is_done_while_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed: list[int] = []

    class Counting(LiveSeries):
        def refresh(self, *, at_most_bytes: int | None = None, leader_only: bool = False) -> int:
            gained = super().refresh(at_most_bytes=at_most_bytes, leader_only=leader_only)
            refreshed.append(gained)
            return gained

    monkeypatch.setattr(follower, "LiveSeries", Counting)
    run = Run(tmp_path / "quiet")
    with serving([run.folder]) as served:
        served.client.get("/")
        assert not threads_of("quiet")
        with served.page("quiet") as page:
            page.until(lambda newest: "findings" in newest)
            assert threads_of("quiet")
        wait_until(lambda: not threads_of("quiet"))
        count = len(refreshed)
        run.go_on(3)
        assert served.client.get("/healthz").status_code == 200
        assert not threads_of("quiet")
        assert len(refreshed) == count
        with served.page("quiet") as page:
            page.until(lambda newest: newest.get("state", {}).get("step") == 43)


def test_a_new_run_appears_and_one_that_is_gone_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOOK_S", 0.0)
    with serving([tmp_path]) as served:
        assert served.client.get("/api/runs").json() == {"runs": []}
        run = Run(tmp_path / "new")
        assert [each["key"] for each in served.client.get("/api/runs").json()["runs"]] == ["new"]
        with served.page("new", "losses") as page:
            page.until(lambda newest: "figure losses" in newest)
            shutil.rmtree(run.folder)
            told = page.until(lambda newest: "the log is gone" in newest["state"]["status"])
            assert told["state"]["is_silent"]
            assert served.client.get("/api/runs").json() == {"runs": []}
            assert served.error("/api/runs/new/stream")[0] == 404
        assert served.client.get("/healthz").status_code == 200
        Run(tmp_path / "new", steps=60)
        with served.page("new") as page:
            page.until(lambda newest: newest.get("state", {}).get("step") == 60)


def test_a_run_without_a_record_waits_for_one(tmp_path: Path) -> None:
    (tmp_path / "empty" / "log").mkdir(parents=True)
    with serving([tmp_path]) as served, served.page("empty") as page:
        told = page.until(lambda newest: "state" in newest)
        assert told["state"]["doing"] == "unread"
        Run(tmp_path / "empty")
        page.until(lambda newest: newest["state"]["step"] == 40)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/runs/third/stream", "There is no run 'third'"),
        ("/api/runs/first/stream?figures=losses,nonsense", "no figure 'nonsense'"),
        ("/api/runs/first/figures/nonsense", "no figure 'nonsense'"),
        ("/api/runs/first/figures/gpus?from=1&to=2", "nothing to show"),
        ("/api/runs/first/figures/time_split?from=1&to=2", "has no stretches"),
        ("/api/compare?runs=first,third", "There is no run 'third'"),
        ("/api/compare?runs=first&quantity=beauty", "no quantity 'beauty'"),
        ("/api/compare?runs=", "None of these runs"),
        ("/assets/index.html", "nothing here"),
        ("/api", "nothing here"),
    ],
)
def test_what_there_is_not_is_said_in_a_sentence(served: Served, path: str, says: str) -> None:
    status, sentence = served.error(path)
    assert status == 404
    assert says in sentence


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("from=here", "from is no place"),
        ("to=nan", "to is no place"),
        ("from=1&to=inf", "to is no place"),
        ("from=-1e999", "from is no place"),
        ("from=2&to=1", "from is not before to"),
        ("from=1&to=1", "from is not before to"),
    ],
)
def test_a_stretch_that_is_none_is_refused(served: Served, asked: str, says: str) -> None:
    status, sentence = served.error(f"/api/runs/first/figures/losses?{asked}")
    assert status == 400
    assert says in sentence


def test_a_stretch_without_an_end_goes_on_to_the_end(served: Served) -> None:
    layout = served.client.get("/api/runs/first/figures/losses?from=20").json()["figure"]["layout"]
    assert "range" not in layout["xaxis"]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/plotly.js",
        "/assets/dashboard.css",
        "/api/compare?runs=first,second",
        "/api/runs/first/figures/losses",
    ],
)
def test_answers_are_packed_for_who_can_unpack_them(served: Served, path: str) -> None:
    plain = served.client.get(path, headers={"Accept-Encoding": "identity, gzip;q=0"})
    packed = served.client.get(path, headers={"Accept-Encoding": "deflate, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < 0.6 * len(plain.content)
    assert {plain.headers["vary"], packed.headers["vary"]} == {"Accept-Encoding"}
    if path.startswith("/assets/"):
        assert packed.content == plain.content
        assert packed.headers["etag"] != plain.headers["etag"]


def test_a_stream_is_never_packed(served: Served) -> None:
    with served.client.stream("GET", "/api/runs/first/stream", headers={"Accept-Encoding": "gzip"}) as stream:
        assert "content-encoding" not in stream.headers


def test_the_page_loads_all_its_modules_at_once(served: Served) -> None:
    names = {each.name for each in Path(dashboard.__path__[0], "page").glob("*.js")}
    assert set(re.findall(r'/assets/(\w+\.js)"', served.client.get("/").text)) == names


@pytest.mark.parametrize(
    "target",
    [
        "/api/runs/../../../etc/passwd",
        "/api/runs/..%2f..%2fetc%2fpasswd/stream",
        "/api/runs/%2e%2e/stream",
        "/api/runs/first%2f..%2fsecond/stream",
        "/api/runs/first%00/stream",
        "/api/runs//etc/passwd/stream",
        "/api/runs/first/figures/..%2flosses",
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/app.py",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out(served: Served, target: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), DEADLINE_S) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"root:" not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_everything_is_only_read(served: Served, method: str) -> None:
    for path in ("/", "/api/runs", "/api/runs/first/stream"):
        answer = served.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/runs/first/stream", "/metrics"])
def test_heads_are_told_without_a_body(served: Served, path: str) -> None:
    answer = served.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_stretch_is_drawn_finer(tmp_path: Path) -> None:
    run = Run(tmp_path / "long", steps=3_000, every=1_000)
    with serving([run.folder]) as served:

        def points(query: str) -> list[float]:
            note = served.client.get(f"/api/runs/long/figures/{query}").json()
            return [float(x) for x in note["figure"]["data"][0]["x"]]

        inside = [x for x in points("losses") if 1_000 <= x <= 1_400]
        finer = served.client.get("/api/runs/long/figures/losses?from=1000&to=1400").json()
        assert finer["figure"]["layout"]["xaxis"]["range"] == [1000, 1400]
        assert len([x for x in finer["figure"]["data"][0]["x"] if 1_000 <= x <= 1_400]) > 2 * len(inside)
        whole = [x for x in points("anatomy") if 2 <= x <= 4]
        assert len([x for x in points("anatomy?from=2&to=4") if 2 <= x <= 4]) > 2 * len(whole)


def test_runs_are_laid_over_one_another(served: Served) -> None:
    note = served.client.get("/api/compare?runs=first,second&quantity=loss&against=tokens").json()
    assert [each["name"] for each in note["figure"]["data"]] == ["first", "second"]
    assert note["title"] == "Training loss against tokens"


def test_too_many_pages_are_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MOST_STREAMS", 1)
    # A server of its own: others notice only after a while that pages of tests before have gone.
    with serving([runs]) as served, served.page("first") as page:
        page.next()
        status, sentence = served.error("/api/runs/second/stream")
    assert status == 503
    assert "close one" in sentence
