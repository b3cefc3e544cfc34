"""Makes the pictures in this folder: what a browser shows of made-up runs and models. Run it from the repository."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, expect, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.unit.observe.report.told_run import build_run  # noqa: E402
from tests.unit.serve.fake import running  # noqa: E402

from tandem.observe.report.gather import gather_report  # noqa: E402
from tandem.observe.report.html import report_page  # noqa: E402
from tandem.serve.served import ServedModel  # noqa: E402
from tandem.translate.translator import Link, Translation  # noqa: E402
from tandem.translate.wish import Wish  # noqa: E402

ANSWERS = ("duration", "network")
"""Beside the overview, the picture shows these."""
CUT = """kept => {
  for (const each of document.querySelectorAll("body > :not(header, main, script), .finding"))
    if (!each.matches(kept)) each.remove();
}"""

SPOKEN = "Yesterday the old gardener gave the children three red apples."
SAID = (
    "Gestern gab der alte Gärtner den Kindern drei rote Äpfel.",
    "Gestern hat der alte Gärtner den Kindern drei rote Äpfel gegeben.",
    "Der alte Gärtner gab den Kindern gestern drei rote Äpfel.",
    "Gestern schenkte der alte Gärtner den Kindern drei rote Äpfel.",
)
PAIRS = (
    "Yesterday Gestern, gave gab, the der, old alte, gardener Gärtner, children Kindern, three drei, red rote, "
    "apples. Äpfel."
)


class Prompter:
    """Says one sentence, and knows what came of what."""

    def translate(self, lines: Sequence[str], wish: Wish) -> list[Translation]:
        """The same for every line."""
        return [self._say(wish) if line else Translation(text="", score=0.0, pieces=0) for line in lines]

    def _say(self, wish: Wish) -> Translation:
        first, *others = (
            Translation(text=text, score=-0.21 * rank, pieces=11) for rank, text in enumerate(SAID, start=1)
        )
        pairs = [pair.split() for pair in PAIRS.split(", ")]
        links = tuple(Link(_place(SPOKEN, one), _place(first.text, other)) for one, other in pairs)
        return Translation(
            text=first.text,
            score=first.score,
            pieces=first.pieces,
            others=tuple(others[: wish.best - 1]),
            alignment=links,
        )


def _place(text: str, word: str) -> tuple[int, int]:
    start = text.index(word)
    return start, start + len(word)


def main() -> None:
    """Write the pictures."""
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder, "report.html")
        page.write_bytes(report_page(gather_report(build_run())))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take(browser, page, HERE / "report.png")
        take_translation(browser, HERE / "translate-page.png")
        browser.close()


def take(browser: Browser, page: Path, picture: Path) -> None:
    """The overview and a few answers, one below the other."""
    opened = browser.new_context(viewport={"width": 1000, "height": 800}, offline=True).new_page()
    opened.goto(page.as_uri(), wait_until="load")
    kept = ", ".join(f"#{key}" for key in ANSWERS)
    opened.evaluate(CUT, kept)
    opened.screenshot(path=picture, full_page=True)


def take_translation(browser: Browser, picture: Path) -> None:
    """The page to translate, with other translations, and a word lit up on both sides."""
    model = ServedModel(name="demo", source="en", target="de", translator=Prompter(), wish=Wish())
    with running(model) as server:
        opened = browser.new_context(viewport={"width": 1000, "height": 620}).new_page()
        opened.goto(str(server.client.base_url), wait_until="load")
        opened.locator("#text").fill(SPOKEN)
        opened.locator("#more").click()
        expect(opened.locator("#others li")).to_have_count(3)
        opened.locator("#translation .word", has_text="Gärtner").hover()
        opened.screenshot(path=picture, full_page=True)
        opened.context.close()


if __name__ == "__main__":
    main()
