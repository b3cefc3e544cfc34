"""The data card's page in a real browser: the figures are drawn, and the browser has nothing to complain of."""

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tandem.observe.data_card import write_html
from tandem.runlog.card import DataCard, Dropped, DroppedPair, Histogram, SideHistograms, read_card

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=10000",
)
EVIL = '</script><script>document.title = "broken"</script><img src=x onerror=alert(1)>'

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page after its scripts have run."""

    dom: str
    complaints: list[str]


@pytest.fixture(scope="module")
def card(repository: Path) -> DataCard:
    return read_card(repository / "tests" / "unit" / "observe" / "card.json")


def opened(card: DataCard, folder: Path) -> Opened:
    page = folder / "card.html"
    write_html(card, page)
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    complaints = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    # Plotly's own source, inlined in the page, must not be taken for what it drew.
    dom = re.sub(r"<script.*?</script>", "", result.stdout, flags=re.DOTALL)
    return Opened(dom=dom, complaints=complaints)


def test_both_figures_are_drawn_under_the_strict_policy(card: DataCard, tmp_path: Path) -> None:
    page = opened(card, tmp_path)
    assert page.complaints == []
    assert len(re.findall(r'class="[^"]*js-plotly-plot', page.dom)) == 2
    assert len(re.findall(r'<g class="trace scatter', page.dom)) == 2
    assert len(re.findall(r'<g class="point"><path d="M', page.dom)) == 2 + len(card.dropped)
    for label in ("4,509,785 kept (98.5 %)", "pieces in a sentence", "en (source)"):
        assert f">{label}</text>" in page.dom


def test_text_of_the_data_runs_nothing_and_is_shown_as_it_stands(card: DataCard, tmp_path: Path) -> None:
    pair = DroppedPair(origin=EVIL, source=EVIL, target=EVIL)
    hostile = replace(
        card,
        languages=replace(card.languages, source=EVIL),
        dropped=(Dropped(reason=EVIL, count=3, examples=(pair,)),),
    )
    page = opened(hostile, tmp_path)
    assert page.complaints == []
    assert "<title>Data card: &lt;/script&gt;" in page.dom
    assert "<img" not in page.dom
    assert re.search(r"<text[^>]*>&lt;/script&gt;&lt;script&gt;document", page.dom)


def test_a_card_without_sentences_is_drawn_without_complaint(card: DataCard, tmp_path: Path) -> None:
    nothing = Histogram(edges=(), counts=())
    bare = replace(card, dropped=(), lengths=SideHistograms(source=nothing, target=nothing))
    page = opened(bare, tmp_path)
    assert page.complaints == []
    assert len(re.findall(r'class="[^"]*js-plotly-plot', page.dom)) == 2
