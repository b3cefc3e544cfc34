import io

import pytest
from rich.console import Console

from tandem.cli.bars import Bars


def shown(*, terminal: bool) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, color_system=None)
    with Bars(console) as progress, progress.bar("cleaning [x]news", total=100, unit="pairs") as bar:
        progress.say("a word")
        bar.advance(60)
        bar.advance(40)
    return output.getvalue()


def test_a_terminal_sees_amounts_and_notes() -> None:
    text = shown(terminal=True)
    assert "cleaning [x]news" in text
    assert "100 pairs/100 pairs" in text
    assert "a word" in text


def test_a_file_gets_one_line_for_each_piece_of_work() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines[0] == "a word"
    assert lines[1].startswith("cleaning [x]news: 100 pairs (")
    assert len(lines) == 2


def test_shares_move_a_bar_forward_only() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=False, width=100)
    with Bars(console) as bars, bars.share("reading") as advance:
        for share in (0.2, 0.7, 0.5, 1.0):
            advance(share)
    assert output.getvalue().startswith("reading: 100 % (")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_worked_on_steers_no_terminal(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, color_system=None)
    with Bars(console) as bars, bars.bar("sending a\x1b]0;x\x07b", total=1) as bar:
        bars.say("host: \x9b2Jgone")
        bar.advance(1)
    assert "sending a\\x1b]0;x\\x07b" in output.getvalue()
    assert "host: \\x9b2Jgone" in output.getvalue()
    assert "\x1b]0" not in output.getvalue()
