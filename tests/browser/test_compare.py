"""The page of a comparison in a real browser: offline, on a phone and in the dark."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.unit.observe.compare.run_story import build_run

from tandem.observe.compare.comparison import compare_runs
from tandem.observe.compare.html import comparison_page

FIGURES = 13
DRAWN = """
() => [...document.querySelectorAll("[data-figure]")].filter(
  box => box.querySelectorAll(".scatterlayer .js-line").length >= 3
).length
"""
WIDE = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = {
        "base-with-a-name-that-is-long-as-names-of-runs-are": build_run(),
        "base-with-a-name-that-is-long-as-names-of-runs-go": build_run(seed=2, bleu=27.4),
        "<wide>": build_run(width=1024, bleu=31.0, loss=1.8, step_s=0.7),
    }
    path = tmp_path_factory.mktemp("compare") / "compare.html"
    path.write_bytes(comparison_page(compare_runs(named)))
    return path


def wait_until(page: Page, condition: str, wanted: object) -> None:
    """Look again and again; playwright's own way needs a policy that lets strings run."""
    until = time.monotonic() + 60
    while page.evaluate(condition) != wanted:
        assert time.monotonic() < until, (condition, page.evaluate(condition))
        page.wait_for_timeout(20)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_draws_every_run_in_every_figure_without_a_complaint(
    browser: Browser, page_file: Path, width: int, scheme: str
) -> None:
    page = browser.new_context(
        offline=True,
        viewport={"width": width, "height": 844},
        color_scheme=scheme,  # type: ignore[arg-type]
    ).new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_file.as_uri(), wait_until="load")
    wait_until(page, DRAWN, FIGURES)
    assert complaints == []
    assert requests == [page_file.as_uri()]
    assert page.evaluate(WIDE), "the page scrolls sideways"
    assert page.locator("#bleu_best .verdict").inner_text() == "● better"
    assert "<wide>" in page.locator("#bleu_best .answer").inner_text()
