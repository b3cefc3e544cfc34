import io
from pathlib import Path

import pytest
from rich.console import Console

from tandem.observe.sinks.printed import PrintedSink


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def told(sink: PrintedSink, console: Console) -> list[str]:
    file = console.file
    assert isinstance(file, io.StringIO)
    file.seek(0)
    file.truncate()
    sink.flush()
    return file.getvalue().splitlines()


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=80)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_each_line_comes_once_with_the_host_that_its_worker_was_started_on(
    log: Path, console: Console
) -> None:
    sink = PrintedSink(log.parent, console)
    append(log / "rank-00000.txt", "started 2026-01-02 03:04:05 on alpha as process 7\none\n")
    append(log / "rank-00001.txt", "started 2026-01-02 03:04:05 on beta as process 9\nhalf")
    assert told(sink, console) == [
        "alpha, rank 0: started 2026-01-02 03:04:05 on alpha as process 7",
        "alpha, rank 0: one",
        "beta, rank 1: started 2026-01-02 03:04:05 on beta as process 9",
    ]
    append(log / "rank-00001.txt", " a line\n")
    assert told(sink, console) == ["beta, rank 1: half a line"]
    assert told(sink, console) == []


def test_a_rank_that_was_started_elsewhere_has_its_new_host(log: Path, console: Console) -> None:
    append(log / "rank-00001.txt", "started 2026-01-02 03:04:05 on beta as process 9\nold\n")
    sink = PrintedSink(log.parent, console)
    append(log / "rank-00001.txt", "started 2026-01-02 03:05:05 on gamma as process 3\nnew\n")
    assert told(sink, console)[1:] == ["gamma, rank 1: new"]


def test_text_that_a_terminal_would_obey_is_made_visible(log: Path, console: Console) -> None:
    sink = PrintedSink(log.parent, console)
    append(log / "rank-00000.txt", "\x1b[2J[red]gone[/red]\n")
    (line,) = told(sink, console)
    assert "\x1b" not in line
    assert "[red]gone[/red]" in line


def test_of_a_flood_the_newest_lines_are_told_and_the_file_is_named(log: Path, console: Console) -> None:
    sink = PrintedSink(log.parent, console)
    append(log / "rank-00000.txt", "".join(f"{number:09d}\n" for number in range(50_000)))
    lines = told(sink, console)
    assert lines[0] == "rank 0: (more than fits here: see rank-00000.txt)"
    assert lines[-1] == "rank 0: 000049999"
    assert all(len(line) == len(lines[-1]) for line in lines[1:])
