from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.observe.imports.printing import of

from tandem.errors import TandemError
from tandem.observe.imports.place import write_run
from tandem.runlog.event import Event, RunFinished


def test_a_run_is_written_with_times_from_its_beginning(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one"
    write_run(run, [(0.0, RunFinished(reason="a")), (1.5, RunFinished(reason="b"))], begun_s=100.0)
    assert [event.reason for event in of(run, RunFinished)] == ["a", "b"]
    assert '"time_ns":101500000000,"clock_s":1.5' in (run / "log/rank-00000.jsonl").read_text()


def test_another_run_is_never_written_over(tmp_path: Path) -> None:
    run = tmp_path / "one"
    run.mkdir()
    with pytest.raises(TandemError, match="one exists already: name another folder with --run"):
        write_run(run, [(0.0, RunFinished(reason="a"))], begun_s=0.0)
    assert list(run.iterdir()) == []


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[float, Event]]:
        yield 0.0, RunFinished(reason="a")
        raise RuntimeError("in the midst")

    with pytest.raises(RuntimeError, match="in the midst"):
        write_run(tmp_path / "one", failing(), begun_s=0.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("begun_s", [-1.0, 1e12])
def test_times_that_no_clock_shows_are_refused(tmp_path: Path, begun_s: float) -> None:
    with pytest.raises(TandemError, match="The times in the files make no sense"):
        write_run(tmp_path / "one", [(0.0, RunFinished(reason="a"))], begun_s=begun_s)
    assert list(tmp_path.iterdir()) == []
