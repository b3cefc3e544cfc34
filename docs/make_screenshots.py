"""Makes the pictures in this folder: what a browser shows of made-up runs and models, or of runs that are given."""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.dashboard_served import serving  # noqa: E402
from tests.unit.observe.report.told_run import build_run  # noqa: E402
from tests.unit.serve.fake import running  # noqa: E402

from tandem import load_translator  # noqa: E402
from tandem.observe.report.gather import gather_report  # noqa: E402
from tandem.observe.report.html import report_page  # noqa: E402
from tandem.runlog.layout import RunLayout  # noqa: E402
from tandem.serve.served import ServedModel  # noqa: E402

ANSWERS = ("duration", "network")
"""Beside the overview, the picture shows these."""
CUT = """kept => {
  for (const each of document.querySelectorAll("body > :not(header, main, script), .finding"))
    if (!each.matches(kept)) each.remove();
}"""

SHARE_DONE = 0.62
"""How far a run is in the pictures of it as it goes on."""
DRAWN = "[...document.querySelectorAll('.chart:has(.main-svg)')].filter(box => box.offsetParent).length"

SPOKEN = "She could not pack the heavy suitcase because she was tired."
POINTED_AT = "Koffer"
"""A word of what the demo's model makes of it."""


def main() -> None:
    """Write the pictures: of the dashboard and of translating where runs are given, else of the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "runs",
        type=Path,
        nargs="*",
        help="real runs for the dashboard, the first one a demo; two or more are compared",
    )
    runs = parser.parse_args().runs
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if runs:
            take_dashboard(browser, runs, Path(folder))
            take_translation(browser, runs[0], HERE / "translate-page.png")
        else:
            page = Path(folder, "report.html")
            page.write_bytes(report_page(gather_report(build_run())))
            take(browser, page, HERE / "report.png")
        browser.close()


def take_dashboard(browser: Browser, runs: Sequence[Path], folder: Path) -> None:
    """The first run as it goes on, wide and on a phone in the dark; all of them compared."""
    for run in runs:
        copy_part(run, folder / run.name, share=SHARE_DONE if run == runs[0] else 1.0)
    with serving(folder) as server:
        live = f"{server.address}/run/{runs[0].name}"
        wide = browser.new_context(viewport={"width": 1300, "height": 1780}).new_page()
        photograph(wide, live, HERE / "dashboard.png", figures=5)
        phone = browser.new_context(
            viewport={"width": 360, "height": 1200}, color_scheme="dark", device_scale_factor=2
        )
        photograph(phone.new_page(), live, HERE / "dashboard-dark-phone.png", figures=2)
        names = ",".join(run.name for run in runs)
        side = browser.new_context(viewport={"width": 1300, "height": 700}).new_page()
        address = f"{server.address}/compare?runs={names}&quantity=loss&against=tokens"
        photograph(side, address, HERE / "dashboard-compare.png", figures=1)


def photograph(page: Page, address: str, picture: Path, *, figures: int) -> None:
    """What the window shows when so many figures are drawn."""
    page.goto(address, wait_until="load")
    until = time.monotonic() + 60
    while page.evaluate(DRAWN) < figures and time.monotonic() < until:
        page.wait_for_timeout(100)
    page.wait_for_timeout(500)
    page.screenshot(path=picture)
    page.context.close()


def copy_part(run: Path, copy: Path, *, share: float) -> None:
    """The log of a run up to a share of its steps, moved in time so that its last word was said just now."""
    records = {
        path.name: [json.loads(line) for line in path.read_bytes().splitlines()]
        for path in RunLayout(run).log.glob("*.jsonl")
    }
    ends = [
        each["time_ns"]
        for each in records[RunLayout(run).rank_log(0).name]
        if share == 1.0 or each["event"] == "StepFinished"
    ]
    cut = ends[round(share * (len(ends) - 1))]
    RunLayout(copy).log.mkdir(parents=True)
    later = time.time_ns() - cut
    for name, held in records.items():
        lines = [
            json.dumps({**each, "time_ns": each["time_ns"] + later})
            for each in held
            if each["time_ns"] <= cut
        ]
        (RunLayout(copy).log / name).write_text("".join(f"{line}\n" for line in lines))


def take(browser: Browser, page: Path, picture: Path) -> None:
    """The overview and a few answers, one below the other."""
    opened = browser.new_context(viewport={"width": 1000, "height": 800}, offline=True).new_page()
    opened.goto(page.as_uri(), wait_until="load")
    kept = ", ".join(f"#{key}" for key in ANSWERS)
    opened.evaluate(CUT, kept)
    opened.screenshot(path=picture, full_page=True)


def take_translation(browser: Browser, run: Path, picture: Path) -> None:
    """The page to translate, with other translations, and a word lit up on both sides."""
    translator = load_translator(run)
    source, target = translator.languages
    model = ServedModel(
        name="demo", source=source, target=target, translator=translator, wish=translator.wish
    )
    with running(model) as server:
        opened = browser.new_context(viewport={"width": 1000, "height": 620}).new_page()
        opened.goto(str(server.client.base_url), wait_until="load")
        opened.locator("#text").fill(SPOKEN)
        opened.locator("#more").click()
        expect(opened.locator("#others li")).to_have_count(3)
        opened.locator("#translation .word", has_text=POINTED_AT).hover()
        opened.screenshot(path=picture, full_page=True)
        opened.context.close()


if __name__ == "__main__":
    main()
