"""Makes the pictures in this folder: a report of a made-up run, as a browser shows it. Run it from the repository."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.unit.observe.report.told_run import build_run  # noqa: E402

from tandem.observe.report.gather import gather_report  # noqa: E402
from tandem.observe.report.html import report_page  # noqa: E402

ANSWERS = ("duration", "network")
"""Beside the overview, the picture shows these."""
CUT = """kept => {
  for (const each of document.querySelectorAll("body > :not(header, main, script), .finding"))
    if (!each.matches(kept)) each.remove();
}"""


def main() -> None:
    """Write the pictures."""
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder, "report.html")
        page.write_bytes(report_page(gather_report(build_run())))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take(browser, page, HERE / "report.png")
        browser.close()


def take(browser: Browser, page: Path, picture: Path) -> None:
    """The overview and a few answers, one below the other."""
    opened = browser.new_context(viewport={"width": 1000, "height": 800}, offline=True).new_page()
    opened.goto(page.as_uri(), wait_until="load")
    kept = ", ".join(f"#{key}" for key in ANSWERS)
    opened.evaluate(CUT, kept)
    opened.screenshot(path=picture, full_page=True)


if __name__ == "__main__":
    main()
