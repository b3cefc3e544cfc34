import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, training, write_log

from tandem.errors import TandemError
from tandem.observe.report.files import write_files
from tandem.observe.report.gather import read_report
from tandem.observe.report.keep import EVERY_S, FIRST_S, Keeper, keep, start_keeper


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_log(tmp_path / "run", list(training(Teller(), steps=30, every=10)))
    return tmp_path / "run"


def test_the_last_report_is_written_when_the_run_ends(run: Path) -> None:
    keeper = start_keeper(run)
    assert keeper.finish(at_most_s=120)
    assert (run / "report" / "report.html").stat().st_size > 1_000_000
    assert (run / "report" / "report.json").is_file()
    assert not (run / "report" / "keeper.txt").exists()


def test_a_killed_run_leaves_a_report(run: Path) -> None:
    program = (
        "import sys, os, pathlib; from tandem.observe.report.keep import start_keeper; "
        "keeper = start_keeper(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(run)], check=False)
    assert killed.returncode == -9
    until = time.monotonic() + 120
    while not (run / "report" / "report.json").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_it_writes_once_more_after_the_end_and_rests_a_minute_at_least(tmp_path: Path) -> None:
    rests: list[float] = []
    written: list[Path] = []

    def wait(seconds: float) -> bool:
        rests.append(seconds)
        return len(rests) == 3

    keep(tmp_path, wait=wait, write=written.append)
    assert len(written) == 3
    assert rests[0] == FIRST_S < EVERY_S
    assert min(rests[1:]) >= EVERY_S


def test_a_report_that_costs_much_is_written_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    clock = iter((0.0, 7.0, 7.0, 7.0))
    monkeypatch.setattr("tandem.observe.report.keep._worked_s", lambda: next(clock))

    def wait(seconds: float) -> bool:
        rests.append(seconds)
        return len(rests) == 2

    keep(tmp_path, wait=wait, write=lambda _run: None)
    assert rests == [FIRST_S, 700.0]


def test_a_failure_is_one_line_and_nothing_else(tmp_path: Path) -> None:
    def fail(_run: Path) -> None:
        raise ValueError("two\nlines")

    keep(tmp_path, wait=lambda _seconds: True, write=fail)
    note = (tmp_path / "report" / "keeper.txt").read_text()
    assert note.endswith(": the report could not be written: two lines\n")
    assert note.count("\n") == 1


def test_a_run_folder_that_is_gone_stays_gone(tmp_path: Path) -> None:
    assert start_keeper(tmp_path / "gone").finish(at_most_s=120)
    assert not (tmp_path / "gone").exists()


def test_a_run_goes_on_where_no_keeper_could_be_started() -> None:
    assert Keeper(None).finish() is False


def test_waiting_loads_nothing_heavy() -> None:
    program = "import sys, tandem.observe.report.keep; print({'plotly', 'torch', 'numpy', 'rich'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_a_success_takes_back_what_was_said_of_a_failure(tmp_path: Path) -> None:
    failures = [ValueError("a\udcff")]

    def write(_run: Path) -> None:
        if failures:
            raise failures.pop()

    notes: list[bool] = []

    def wait(_seconds: float) -> bool:
        notes.append((tmp_path / "report" / "keeper.txt").exists())
        return len(notes) == 2

    keep(tmp_path, wait=wait, write=write)
    assert notes == [False, True]
    assert not (tmp_path / "report" / "keeper.txt").exists()


def test_a_report_is_not_written_through_a_linked_folder(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "report").symlink_to(elsewhere)
    with pytest.raises(TandemError, match="report is a link"):
        write_files(read_report(run), run)
    keep(run, wait=lambda _seconds: True, write=lambda run: write_files(read_report(run), run))
    assert not any(elsewhere.iterdir())
