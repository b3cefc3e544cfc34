import io
import re

import pytest
from rich.cells import cell_len
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
    assert "100/100 pairs" in text
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


def rows_of(width: int, task: str, *, total: int, done: int, unit: str) -> list[str]:
    """What stands on a terminal when a part is done."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, _environ={})
    bars = Bars(console)
    with bars.bar(task, total=total, unit=unit) as bar:
        bar.advance(done)
        with console.capture() as capture:
            console.print(bars._progress.get_renderable())
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize(
    "task", ["clean", "sending 123,456 files to gpu-node-00.cluster.example.org", "x" * 99]
)
@pytest.mark.parametrize(("total", "unit"), [(30_123_456, "pairs"), (987_654_321_000, "B"), (5, "")])
def test_a_row_fits_its_terminal_with_whole_numbers(width: int, task: str, total: int, unit: str) -> None:
    (row,) = rows_of(width, task, total=total, done=total // 2, unit=unit)
    assert cell_len(row) < width
    (wide,) = rows_of(400, task, total=total, done=total // 2, unit=unit)
    assert set(re.findall(r"\d[\d,.:]*", row)) <= set(re.findall(r"\d[\d,.:]*", wide))
    assert row.count("…") == (task not in row)


def test_the_amount_is_the_last_to_go() -> None:
    (row,) = rows_of(60, "cleaning", total=30_123_456, done=12_345_678, unit="pairs")
    assert "12,345,678/30,123,456 pairs" in row


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "unknown"}])
def test_a_terminal_that_cannot_go_back_gets_lines(environment: dict[str, str]) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=60, color_system=None, _environ=environment)
    with Bars(console) as bars, bars.bar("cleaning", total=2, unit="pairs") as bar:
        bar.advance(2)
    assert re.fullmatch(r"cleaning: 2 pairs \(\d\.\d s\)\n", output.getvalue())


def test_a_line_in_a_file_is_not_broken() -> None:
    output = io.StringIO()
    with Bars(Console(file=output, width=60)) as bars:
        bars.say("word " * 40)
    assert output.getvalue().count("\n") == 1
