"""The dashboard in a real browser: live, by keyboard, on a phone, through lost connections and killed runs."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.dashboard_served import Served, serving
from benchmarks.day_log import DayLog
from benchmarks.killing import write_recipe
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect
from tests.unit.observe import story

from tandem.runlog.event import SampleTranslated, WorkersLost

DEADLINE_S = 120
WAIT_MS = 1000 * DEADLINE_S
WIDE: ViewportSize = {"width": 1300, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
TABS = ("learning", "step", "hosts", "data", "answers", "log")
MARKUP = "<img src=x onerror=\"document.title='taken over'\"><b>bold</b>"
SHOWN = """() => Object.fromEntries(
  [...document.querySelectorAll(".chart")].filter(chart => chart.offsetParent)
    .map(chart => [chart.dataset.name, chart.querySelector(".plot")])
    .filter(([_, plot]) => plot.querySelector(".main-svg") && plot._fullLayout?.xaxis?.range && plot.data?.length)
    .map(([name, plot]) => [name, plot, plot._fullLayout.xaxis.range.map(Number)])
    .map(([name, plot, range]) => [name, {
      range,
      marks: plot.querySelectorAll(".js-line, .js-fill, .point").length,
      last: plot.data[0].x.at(-1),
      points: plot.data[0].x.filter(x => x >= range[0] && x <= range[1]).length,
      text: plot.getAttribute("aria-label"),
      kinds: plot.data.map(({ type }) => type),
      drawn: plot._fullData.map(({ type }) => type),
    }])
)"""

FRAMES = """
window.drawn = [];
const look = () => {
  const count = document.querySelectorAll(".chart:has(.js-line)").length;
  if (count !== window.drawn.at(-1)) window.drawn.push(count);
};
new MutationObserver(() => setTimeout(look)).observe(document, { childList: true, subtree: true });
"""

LEAVE_AND_RETURN = """async () => {
  const { Board } = await import("/assets/figures.js");
  const board = new Board(), charts = ["one", "other"].map((name) => board.add(name));
  const payload = (y) => ({
    title: "", meaning: "", section: "", alternative: "",
    figure: { data: [{ type: "scatter", x: [1, 2], y }], layout: { height: 200, xaxis: {} } },
  });
  const until = async (holds) => { while (!holds()) await new Promise(requestAnimationFrame); };
  const listeners = ({ element }) => element.querySelector(".plot")._ev?.listeners("plotly_relayout").length;
  const heard = () => charts.map(listeners);
  for (const chart of charts) {
    document.querySelector("main").prepend(chart.element);
    chart.take(payload([1, 2]));
  }
  await until(() => heard().every((count) => count === 1));
  for (const chart of charts) chart.take(payload([2, 1]));  // the second one waits for its turn
  for (const chart of charts) {
    chart.isNear = false;
    chart.purge();
    chart.isNear = true;
    chart.draw();
    chart.take(payload([3, 1]));
  }
  await until(() => charts.every(({ element }) => element.querySelector(".plot").data?.[0].y[0] === 3));
  const found = heard();
  for (const chart of charts) board.remove(chart);
  return found;
}"""

DRAW_AGAIN = """async () => {
  const { Board } = await import("/assets/figures.js");
  const board = new Board(), chart = board.add("one"), other = board.add("other");
  const payload = () => ({
    title: "", meaning: "", section: "", alternative: "",
    figure: { data: [{ type: "scatter", x: [1, 1000], y: [1, 2] }], layout: { height: 200, xaxis: {} } },
  });
  const rangeOf = ({ element }) => element.querySelector(".plot")._fullLayout?.xaxis?.range?.map(Number);
  const until = async (holds) => { while (!holds()) await new Promise(requestAnimationFrame); };
  const held = payload();
  const ranges = [];
  document.querySelector("main").prepend(chart.element, other.element);
  const takes = [() => chart.take(held), () => chart.draw(), () => chart.take(held), () => chart.take(payload())];
  for (const take of takes) {
    take();
    other.take(payload());  // when that is drawn, so is the one before it
    const before = other.element.querySelector(".plot").data;
    await until(() => rangeOf(other) && other.element.querySelector(".plot").data !== before);
    ranges.push(rangeOf(chart));
  }
  for (const each of [chart, other]) board.remove(each);
  return ranges;
}"""

pytestmark = pytest.mark.xdist_group("dashboard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page and what the browser said of it."""

    page: Page
    complaints: list[str]
    requests: list[str]

    def at(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def shown(self) -> dict[str, dict[str, Any]]:
        """The figures that are drawn in the part of the page that is open."""
        found: dict[str, dict[str, Any]] = self.page.evaluate(SHOWN)
        return found

    def wait_until(self, condition: Any) -> None:
        """Look again and again; playwright's own way needs a policy that lets strings run."""
        until = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < until, self.at("body").inner_text()
            self.page.wait_for_timeout(50)

    def close(self) -> None:
        self.page.context.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A folder of runs: one that goes on as a test wishes, and one whose texts are not to be trusted."""

    folder: Path
    day: DayLog


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    day = DayLog(folder / "day", seconds=10_000, begun_ns=time.time_ns())
    day.advance(1_500)
    teller = story.Teller()
    sample = SampleTranslated(
        step=200, set="valid", number=0, source=MARKUP, reference=MARKUP, hypothesis=MARKUP
    )
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason=MARKUP, host=MARKUP)
    records = [
        *story.training(teller, steps=300),
        teller.tell(sample),
        teller.tell(lost, rank=None),
    ]
    story.write_log(folder / "odd", records)
    return Runs(folder=folder, day=day)


@pytest.fixture(scope="module")
def server(runs: Runs) -> Iterator[Served]:
    with serving(runs.folder) as started:
        yield started


def opened(browser: Browser, address: str, **context: Any) -> Opened:
    page = browser.new_context(**{"viewport": WIDE, **context}).new_page()
    page.set_default_timeout(WAIT_MS)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address, wait_until="load")
    expect.set_options(timeout=WAIT_MS)
    return Opened(page=page, complaints=complaints, requests=requests)


@pytest.fixture(scope="module")
def shown(browser: Browser, server: Served) -> Opened:
    """One page for all tests that leave it as it was."""
    return opened(browser, f"{server.address}/run/day")


def test_every_part_shows_its_figures_without_complaint_and_asks_nobody_else(
    shown: Opened, server: Served
) -> None:
    wanted = {
        "learning": {"losses", "bleu", "learning_rate", "gradient_norm", "throughput"},
        "step": {"anatomy", "step_times", "exchange", "step_bytes", "time_split"},
        "hosts": {"gpus", "network", "cpu"},
        "data": {"checkpoint_parts"},
    }
    for tab, names in wanted.items():
        shown.at(f"#tab-{tab}").click()
        for name in sorted(names):
            shown.at(f"#panel-{tab} [data-name={name}]").scroll_into_view_if_needed()
            shown.wait_until(lambda name=name: shown.shown().get(name, {}).get("marks", 0) > 0)
        assert all(each["text"] for each in shown.shown().values())
        assert all(each["drawn"] == each["kinds"] for each in shown.shown().values())
    expect(shown.at("#panel-hosts .host")).to_have_count(2)
    shown.at("#tab-answers").click()
    expect(shown.at(".question")).to_have_count(11)
    assert all(url.startswith((server.address, "data:")) for url in shown.requests)
    assert shown.complaints == []
    expect(shown.at(".main-svg")).to_have_count(0)  # figures of closed parts are taken down


def test_a_run_that_is_still_being_read_stands_there_as_the_list_has_it(
    browser: Browser, server: Served
) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    page.route("**/stream?*", lambda _: None)  # asked for, and not answered yet
    page.goto(f"{server.address}/run/odd")
    expect(page.locator("#way")).to_contain_text("30 % · step 300 of 1,000", timeout=WAIT_MS)
    expect(page.locator("#status")).to_contain_text("silent for")
    expect(page).to_have_title("30 % ⚠ silent · odd · Tandem")
    expect(page.locator("#numbers dd")).to_have_count(0)
    page.context.close()


def test_the_page_is_shown_between_two_figures(browser: Browser, server: Served) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    page.add_init_script(FRAMES)
    page.goto(f"{server.address}/run/day")
    expect(page.locator("#panel-learning .main-svg .js-line").nth(3)).to_be_attached(timeout=WAIT_MS)
    counts = page.evaluate("window.drawn")
    assert len([count for count in counts if count]) >= 2
    page.context.close()


def test_a_figure_that_was_left_and_returned_to_at_once_still_hears_the_mouse(shown: Opened) -> None:
    shown.at("#tab-learning").click()
    shown.wait_until(lambda: "losses" in shown.shown())
    assert shown.page.evaluate(LEAVE_AND_RETURN) == [1, 1]


def test_a_figure_that_is_drawn_again_keeps_its_range(shown: Opened) -> None:
    shown.at("#tab-learning").click()
    shown.wait_until(lambda: "losses" in shown.shown())
    ranges = shown.page.evaluate(DRAW_AGAIN)
    assert len(ranges) == 4
    assert all(first < 1 and last > 1000 for first, last in ranges)


def test_steps_reach_header_title_and_figures_as_they_are_written(shown: Opened, runs: Runs) -> None:
    shown.at("#tab-learning").click()
    shown.wait_until(lambda: "losses" in shown.shown())
    before = shown.shown()["losses"]["last"]
    runs.day.advance(100)
    expect(shown.at("#way")).to_contain_text(f"step {runs.day.second:,} of 10,000")
    shown.wait_until(lambda: shown.shown()["losses"]["last"] > before)
    assert re.match(r"1[67] % ● training · day · Tandem", shown.page.title())
    assert "left · ends about" in shown.at("#way").inner_text()


def test_looking_closely_at_a_timeline_moves_all_of_them_and_is_finer(shown: Opened, runs: Runs) -> None:
    shown.at("#tab-hosts").click()
    shown.wait_until(lambda: {"gpus", "network"} <= shown.shown().keys())
    before = shown.shown()["gpus"]
    gpus = shown.at("#panel-hosts [data-name=gpus]")
    for _ in range(3):
        gpus.get_by_label("Zoom in").click()
    shown.wait_until(lambda: shown.shown()["gpus"]["points"] > before["points"] / 4)
    close = shown.shown()
    assert close["gpus"]["range"] == close["network"]["range"]
    width = close["gpus"]["range"][1] - close["gpus"]["range"][0]
    # Each time half as wide; between two looks the run has gone on, and the whole has grown a little.
    assert width < (before["range"][1] - before["range"][0]) / 6
    runs.day.advance(100)
    expect(shown.at("#way")).to_contain_text(f"step {runs.day.second:,} of")
    assert shown.shown()["gpus"]["range"] == close["gpus"]["range"]
    shown.at("#panel-hosts [data-name=network]").get_by_label("Whole run").click()
    shown.wait_until(lambda: shown.shown()["gpus"]["range"][1] > before["range"][1])
    shown.wait_until(lambda: shown.shown()["network"]["range"] == shown.shown()["gpus"]["range"])


def test_a_zoom_stays_within_the_run_and_shows_a_few_points_at_least(shown: Opened) -> None:
    shown.at("#tab-learning").click()
    shown.wait_until(lambda: "losses" in shown.shown())
    whole, losses = shown.shown()["losses"]["range"], shown.at("#panel-learning [data-name=losses]")

    def is_whole() -> bool:
        first, last = shown.shown()["losses"]["range"]
        # Steps of tests before may still come.
        return first == pytest.approx(whole[0], abs=5) and bool(last >= whole[1])

    for name in ("Zoom out", "Earlier", "Later"):
        losses.get_by_label(name).click()
        expect(losses.get_by_label("Whole run")).to_be_hidden()
        shown.wait_until(is_whole)
    losses.get_by_label("Zoom in").click()
    for _ in range(4):
        losses.get_by_label("Earlier").click()
    shown.wait_until(lambda: 0 < shown.shown()["losses"]["range"][0] < 20)
    for _ in range(30):
        losses.get_by_label("Zoom in").click()
    shown.wait_until(lambda: shown.shown()["losses"]["points"] >= 3)
    losses.get_by_label("Zoom out").click()
    expect(losses.get_by_label("Whole run")).to_be_visible()
    for _ in range(30):
        losses.get_by_label("Zoom out").click()
    expect(losses.get_by_label("Whole run")).to_be_hidden()


def test_a_host_is_one_line_that_opens_and_stays_open(shown: Opened, runs: Runs) -> None:
    shown.at("#tab-hosts").click()
    host = shown.at(".host").first
    expect(host.locator(".gpus")).to_contain_text("% busy")
    host.locator("summary").click()
    expect(host.locator(".devices p").first).to_be_visible()
    runs.day.advance(100)
    expect(shown.at("#way")).to_contain_text(f"step {runs.day.second:,} of")
    expect(host.locator(".devices p").first).to_be_visible()
    host.locator("summary").click()


def test_dragging_zooms_and_a_double_click_goes_back(shown: Opened) -> None:
    shown.at("#tab-learning").click()
    shown.wait_until(lambda: "losses" in shown.shown())
    whole = shown.shown()["losses"]["range"]
    area = shown.at("#panel-learning [data-name=losses] .nsewdrag").first.bounding_box()
    assert area is not None
    middle = area["y"] + area["height"] / 2
    shown.page.mouse.move(area["x"] + 100, middle)
    shown.page.mouse.down()
    shown.page.mouse.move(area["x"] + 250, middle, steps=4)
    shown.page.mouse.up()
    shown.wait_until(lambda: shown.shown()["losses"]["range"][0] > whole[0])
    shown.page.mouse.dblclick(area["x"] + 100, middle)
    shown.wait_until(lambda: shown.shown()["losses"]["range"][0] == pytest.approx(whole[0], abs=20))


def test_the_keyboard_reaches_parts_and_answers(browser: Browser, server: Served) -> None:
    fresh = opened(browser, f"{server.address}/run/day")
    page = fresh.page
    expect(fresh.at(".question")).to_have_count(11)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel-learning"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "tab-learning"
    for key, reached in (
        ("ArrowLeft", "log"),
        ("ArrowRight", "learning"),
        ("End", "log"),
        ("ArrowLeft", "answers"),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{reached}"
        expect(fresh.at(f"#panel-{reached}")).to_be_visible()
    assert page.url.endswith("#answers")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    first = fresh.at(".question").first
    expect(first.locator(".facts > div").first).to_be_visible()
    first.locator("summary", has_text="What is this?").first.click()
    expect(first.locator(".help .section p").first).to_be_visible()
    assert fresh.complaints == []
    fresh.close()


def test_a_phone_scrolls_downwards_only_in_the_dark_too(browser: Browser, server: Served) -> None:
    phone = opened(browser, f"{server.address}/run/day", viewport=PHONE, color_scheme="dark", has_touch=True)
    phone.wait_until(lambda: "losses" in phone.shown())
    for tab in TABS:
        phone.at(f"#tab-{tab}").click()
        assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert phone.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    phone.page.goto(f"{server.address}/")
    expect(phone.at("#list li").first).to_be_visible()
    assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert phone.complaints == []
    phone.close()


def test_texts_of_a_run_stay_texts_and_a_silent_run_is_called_silent(
    browser: Browser, server: Served
) -> None:
    odd = opened(browser, f"{server.address}/run/odd")
    expect(odd.at(".pair .target").last).to_contain_text("<b>bold</b>")
    expect(odd.at("#troubles")).to_contain_text("<b>bold</b>")
    expect(odd.at("#status")).to_contain_text("silent for")
    expect(odd.at("#troubles")).to_contain_text("Nothing has been heard of the run since")
    odd.at("#tab-log").click()
    odd.at(".filter input").fill("onerror")
    expect(odd.at(".journal tbody tr")).to_have_count(1)
    assert odd.at(".journal b, .pair img, #troubles b").count() == 0
    assert "⚠ silent · odd · Tandem" in odd.page.title()
    assert odd.complaints == []
    odd.close()


def test_a_run_that_is_not_there_yet_is_shown_when_it_comes(
    browser: Browser, server: Served, runs: Runs
) -> None:
    page = opened(browser, f"{server.address}/run/later")
    expect(page.at("#connection")).to_contain_text("There is no run of this name here now")
    story.write_log(runs.folder / "later", [story.Teller().tell(story.started())])
    expect(page.at("#equipment")).to_contain_text("2 ranks")
    expect(page.at("#connection")).to_be_hidden()
    page.close()


def test_a_run_that_is_deleted_is_called_gone_and_listed_no_more(
    browser: Browser, server: Served, runs: Runs
) -> None:
    story.write_log(runs.folder / "doomed", list(story.training(story.Teller(), steps=20)))
    page = opened(browser, f"{server.address}/run/doomed")
    expect(page.at("#way")).to_contain_text("step 20 of")
    expect(page.at("#runs option[value=doomed]")).to_have_count(1)
    shutil.rmtree(runs.folder / "doomed")
    expect(page.at("#status")).to_contain_text("the log is gone")
    expect(page.page).to_have_title(re.compile("⚠ gone · doomed"))
    expect(page.at("#runs option[value=doomed]")).to_have_count(0)
    page.close()


def test_a_name_that_is_no_text_is_no_run(browser: Browser, server: Served) -> None:
    page = opened(browser, f"{server.address}/run/%E0%A4")
    expect(page.at("#connection")).to_contain_text("There is no run of this name here now")
    expect(page.page).to_have_title(re.compile("⚠ no such run"))
    page.close()


def test_the_list_of_runs_stands_in_columns_and_marks_what_is_damaged(
    browser: Browser, server: Served, runs: Runs
) -> None:
    (runs.folder / "damaged" / "log").mkdir(parents=True)
    page = opened(browser, f"{server.address}/")
    expect(page.at("#list a[href='/run/damaged']")).to_be_visible()
    row = page.at("#list li").filter(has=page.at("a[href='/run/damaged']"))
    expect(row.locator(".symbol")).not_to_have_text("●")
    for part in ("a", ".status", ".progress", ".way", ".scores"):
        boxes = [each.bounding_box() for each in page.at(f"#list li > {part}").all()]
        assert len({round(box["x"]) for box in boxes if box is not None}) == 1
    shutil.rmtree(runs.folder / "damaged")
    page.close()


def test_chosen_runs_are_laid_over_one_another(browser: Browser, server: Served) -> None:
    page = opened(browser, f"{server.address}/")
    for key in ("day", "odd"):
        page.at(f"#list input[value={key}]").check()
    page.at("#compare-chosen").click()
    page.wait_until(lambda: {"day:", "odd:"} <= set(page.shown().get("loss", {"text": ""})["text"].split()))
    page.at("#quantity").select_option("bleu")
    page.at("#against").select_option("tokens")
    page.wait_until(lambda: "bleu" in page.shown())
    assert page.page.url.endswith("/compare?runs=day,odd&quantity=bleu&against=tokens")
    page.at("#runs").select_option("odd")
    expect(page.at("#name")).to_have_text("odd")
    page.page.go_back()
    page.wait_until(lambda: "bleu" in page.shown())
    assert page.complaints == []
    page.close()


def test_a_second_tab_sees_the_same(shown: Opened, server: Served, runs: Runs) -> None:
    second = shown.page.context.new_page()
    second.goto(f"{server.address}/run/day#step")
    expect(second.locator("#panel-step .main-svg").first).to_be_visible()
    runs.day.advance(50)
    for page in (second, shown.page):
        expect(page.locator("#way")).to_contain_text(f"step {runs.day.second:,} of")
    second.close()


def test_a_hidden_page_lets_go_after_a_minute_and_comes_back(
    browser: Browser, server: Served, runs: Runs
) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    page.clock.install()
    page.goto(f"{server.address}/run/day")
    way = page.locator("#way")
    expect(way).to_contain_text(f"step {runs.day.second:,} of")
    _hide(page, "hidden")
    page.clock.run_for(61_000)
    left = runs.day.second
    runs.day.advance(50)
    other = opened(browser, f"{server.address}/run/day")
    expect(other.at("#way")).to_contain_text(f"step {runs.day.second:,} of")
    expect(way).to_contain_text(f"step {left:,} of")
    _hide(page, "visible")
    expect(way).to_contain_text(f"step {runs.day.second:,} of")
    other.close()
    page.context.close()


def _hide(page: Page, state: str) -> None:
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


def test_a_server_for_others_asks_for_its_token_and_is_found_again_after_a_restart(
    browser: Browser, runs: Runs, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-enough-length\n")
    token.chmod(0o600)
    options = ("--host", "0.0.0.0", "--token-file", str(token), "--port")
    with serving(runs.folder / "day", options=(*options, "0")) as guarded:
        port = guarded.address.rpartition(":")[2]
        address = f"http://127.0.0.1:{port}"
        page = opened(browser, f"{address}/?token=another-token-of-that-length")
        expect(page.at("body")).to_contain_text("not one of this server")
        page.page.goto(f"{address}/run/day")
        expect(page.at("body")).to_contain_text("A token is needed")
        expect(page.at("input[name=token]")).to_be_focused()
        page.page.keyboard.type("a-token-of-enough-length")
        page.page.keyboard.press("Enter")
        expect(page.at("#way")).to_contain_text("step ")
        assert page.page.url == f"{address}/run/day"
        assert "token" not in page.page.evaluate("document.cookie")
        for path in ("/assets/../app.py", "/assets/%2e%2e%2fapp.py", "/api/runs/..%2f..%2fetc/stream"):
            answer = page.page.request.get(address + path)
            assert (answer.status, list(answer.json())) == (404, ["error"])
    expect(page.at("#connection")).to_contain_text("Connection lost at")
    assert "connection lost" in page.page.title()
    with serving(runs.folder / "day", options=(*options, port)):
        expect(page.at("#connection")).to_be_hidden()
        expect(page.at("#spoken")).to_have_text("The connection is back.")
    page.close()


def test_a_real_run_is_followed_through_its_death_and_its_resumption(
    browser: Browser, server: Served, runs: Runs
) -> None:
    write_recipe(runs.folder, steps=100_000, saved=10)
    how = ["--plain", "--device", "cpu", "--workers"]
    with _tandem(runs.folder, "train", "micro.yaml", "--run", "live", *how, "2"):
        page = opened(browser, f"{server.address}/")
        page.at("#list a[href='/run/live']").click()
        page.wait_until(lambda: page.shown().get("losses", {}).get("last", 0) > 0)
        before = page.shown()["losses"]["last"]
        page.wait_until(lambda: page.shown()["losses"]["last"] > before)
        expect(page.at("#equipment")).to_contain_text("2 ranks")
        checkpoints = runs.folder / "live" / "checkpoints"
        page.wait_until(lambda: any(checkpoints.glob("step-????????/manifest.json")))
        assert page.complaints == []
    expect(page.at("#status")).to_have_attribute("data-doing", "lost")
    died = _step(page)
    with _tandem(runs.folder, "resume", "live", *how, "1"):
        expect(page.at("#status")).to_have_attribute("data-doing", "training")
        page.wait_until(lambda: _step(page) > died)
        page.at("#tab-log").click()
        expect(page.at(".journal")).to_contain_text("1 rank")
        assert page.complaints == []
    page.close()


def _step(page: Opened) -> int:
    found = re.search(r"step ([\d,]+)", page.at("#way").inner_text())
    return int(found[1].replace(",", "")) if found else 0


@contextmanager
def _tandem(folder: Path, *words: str) -> Iterator[None]:
    """A command that is killed at the end of this context, with all that it has started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tandem", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
        assert process.poll() is None, "it ended too soon"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
