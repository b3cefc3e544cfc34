"""Bars in a real terminal of any width: nothing wraps, and no number is cut."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.terminal import Terminal

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="needs tmux, which gives a real terminal"
)

WIDTHS = (60, 80, 120, 200)
WORK = """
import sys
from tandem.cli.bars import Bars
with Bars() as bars, bars.bar("cleaning europarl and news", total=30_123_456, unit="pairs") as pairs:
    pairs.advance(14_691_356)
    with bars.bar("sending 123,456 files to gpu-node.cluster.example.org", total=3_000_000_000, unit="B") as sent:
        sent.advance(2_100_000_000)
        print("ready", flush=True)
        sys.stdin.readline()
"""
NUMBERS = {"14,691,356", "30,123,456", "2,100.0", "3,000.0", "123,456"}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "work.py").write_text(WORK)
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


@pytest.mark.parametrize("environment", ["TERM=$TERM", "NO_COLOR=1"])
def test_rows_fit_any_terminal(terminal: Terminal, environment: str) -> None:
    for width in WIDTHS:
        terminal.resize(width, 24)
        terminal.run(f"clear; env {environment} {sys.executable} work.py")
        text = terminal.until(lambda text: "2,100.0/3,000.0 MB" in text and "ready" in text)
        rows = [line for line in text.splitlines() if "cleaning" in line or "sending" in line]
        assert len(rows) == 2
        assert "14,691,356/30,123,456 pairs" in rows[0]
        assert all(len(row) < width for row in rows)
        told = set(re.findall(r"\d[\d,.]*", re.sub(r"\d+:\d\d:\d\d|[\d,.]+ \w+/s", "", "\n".join(rows))))
        assert told <= NUMBERS
        terminal.run("")
        terminal.until(lambda text: text.rstrip().endswith("$"))


def test_a_terminal_that_cannot_go_back_and_a_file_get_lines(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(f"clear; TERM=dumb {sys.executable} work.py; echo left with $?")
    terminal.until(lambda text: "ready" in text)
    terminal.run("")
    shown = terminal.until(lambda text: "left with 0" in text)
    assert "pairs (" in shown
    assert "━" not in shown
    terminal.run(f"clear; {sys.executable} work.py 2> lines.txt; echo piped with $?")
    terminal.until(lambda text: "ready" in text)
    terminal.run("")
    terminal.until(lambda text: "piped with 0" in text)
    sent, cleaned = (tmp_path / "lines.txt").read_text(encoding="utf-8").splitlines()
    assert sent.startswith("sending 123,456 files to gpu-node.cluster.example.org: 2,100.0 MB (")
    assert cleaned.startswith("cleaning europarl and news: 14,691,356 pairs (")
