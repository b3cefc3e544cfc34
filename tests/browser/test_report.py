"""The report's page in a real browser: offline, on a phone, in the dark and on paper."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page
from tests.unit.observe.report.told_run import bare_run, build_run

from tandem.observe.report.gather import gather_report
from tandem.observe.report.html import report_page

POINTS = """
() => [...document.querySelectorAll("[data-figure]")].map(box => [
  box.dataset.figure,
  box.querySelectorAll(
    ".scatterlayer .js-line, .scatterlayer .js-fill, .scatterlayer .point, .barlayer .point"
  ).length,
  box.getBoundingClientRect().width,
])
"""

HEIGHTS = """
() => [...document.querySelectorAll("[data-figure]")].filter(box => box.offsetParent).map(box => [
  box.dataset.figure,
  Math.round(box.getBoundingClientRect().height),
  Math.round(box.querySelector(".main-svg").getBoundingClientRect().height),
])
"""
FITS = """
[...document.querySelectorAll("[data-figure]")].filter(box => box.offsetParent).every(
  box => Math.abs(box.querySelector(".main-svg").getBoundingClientRect().width - box.clientWidth) < 1
)
"""

SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page and what the browser said of it."""

    page: Page
    complaints: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(report_page(gather_report(build_run())))
    return path


def opened(browser: Browser, path: Path, **context: Any) -> Opened:
    page = browser.new_context(offline=True, **context).new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri(), wait_until="load")
    return Opened(page=page, complaints=complaints, requests=requests)


def wait_until(page: Page, condition: str) -> None:
    """Look again and again; playwright's own way needs a policy that lets strings run."""
    until = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(20)


@pytest.fixture(scope="module")
def desktop(browser: Browser, report: Path) -> Opened:
    """One page for all tests that leave it as it was: drawing takes a second or more."""
    return opened(browser, report)


def test_every_figure_shows_data_offline_and_without_complaint(desktop: Opened, report: Path) -> None:
    drawn = desktop.page.evaluate(POINTS)
    assert desktop.complaints == []
    assert desktop.requests == [report.as_uri()]
    assert len({name for name, _, _ in drawn}) == 16
    assert [name for name, points, _ in drawn if points < 1] == []
    assert desktop.page.locator(".finding").count() == 11


def test_answers_are_reached_by_keyboard(desktop: Opened) -> None:
    page = desktop.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#duration"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#duration"


def test_what_a_question_means_and_how_it_is_judged_opens_by_keyboard(desktop: Opened) -> None:
    page = desktop.page
    page.locator("#network > .what summary").first.focus()
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#network > .what').open")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#section-network"
    assert not page.evaluate("document.getElementById('section-network').open")
    page.keyboard.press("Enter")
    wait_until(page, "document.getElementById('section-network').open")
    assert page.locator("#section-network li").first.is_visible()
    assert page.evaluate("document.getElementById('section-network').getBoundingClientRect().top") < 300
    page.evaluate("document.querySelectorAll('#network > .what').forEach(each => each.open = false)")


def test_a_figure_leads_to_what_is_concluded_from_it(desktop: Opened) -> None:
    page = desktop.page
    figure = page.locator("#figures-hosts figure").first
    figure.locator("summary").click()
    figure.locator("a").click()
    wait_until(page, "document.getElementById('section-gpus').open")
    assert desktop.complaints == []


def test_text_of_figures_can_be_read_in_the_dark(desktop: Opened) -> None:
    page = desktop.page
    colours = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        text = page.locator(".js-plotly-plot .xtick text").first
        colours.append(
            (
                page.evaluate("getComputedStyle(document.body).backgroundColor"),
                text.evaluate("text => getComputedStyle(text).fill"),
            )
        )
    page.emulate_media(color_scheme=None)
    assert colours == [("rgb(255, 255, 255)", "rgb(27, 31, 35)"), ("rgb(20, 23, 26)", "rgb(230, 233, 236)")]


def test_paper_shows_what_is_folded_and_keeps_to_its_width(desktop: Opened) -> None:
    page = desktop.page
    page.evaluate(
        "addEventListener('beforeprint', () => window.printed = ["
        "document.querySelectorAll('details:not([open])').length,"
        "...[...document.querySelectorAll('.main-svg')].map(svg => svg.getBoundingClientRect().width)])"
    )
    paper = page.pdf(format="A4")
    folded, *widths = page.evaluate("window.printed")
    assert folded == 0
    assert 0 < max(widths) <= 660
    assert paper.count(b"/Type /Page\n") >= 3
    wait_until(page, FITS)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.set_viewport_size({"width": 690, "height": 1000})
    wait_until(page, "document.documentElement.scrollWidth == 690")


def test_figures_keep_their_heights_when_the_window_changes_and_after_printing(
    browser: Browser, report: Path
) -> None:
    page = opened(browser, report, viewport={"width": 1100, "height": 900}).page
    wait_until(page, FITS)
    heights = page.evaluate(HEIGHTS)
    assert all(box == figure > 100 for _, box, figure in heights)
    for width in (360, 1100):
        page.set_viewport_size({"width": width, "height": 900})
        wait_until(page, FITS)
        assert page.evaluate(HEIGHTS) == heights
    page.pdf(format="A4")
    wait_until(page, FITS)
    assert page.evaluate(HEIGHTS) == heights
    page.context.close()


def test_a_phone_scrolls_downwards_only(browser: Browser, report: Path) -> None:
    shown = opened(browser, report, viewport={"width": 360, "height": 740})
    shown.page.evaluate("document.querySelectorAll('.what').forEach(each => each.open = true)")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 360
    assert max(width for _, _, width in shown.page.evaluate(POINTS)) <= 360
    assert shown.complaints == []


def test_a_run_of_which_little_is_known_is_shown_without_complaint(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "bare.html"
    path.write_bytes(report_page(gather_report(bare_run())))
    shown = opened(browser, path)
    assert shown.complaints == []
    assert [name for name, points, _ in shown.page.evaluate(POINTS) if points < 1] == []
    assert "No figure: No GPU was sampled." in shown.page.content()
