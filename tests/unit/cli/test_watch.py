import os
import signal
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, finished, started, write_log

from tandem.cli.watch import watch
from tandem.errors import TandemError
from tandem.runlog.event import RunFinished


def test_a_finished_run_is_told_in_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started()), teller.step(1), teller.tell(finished(1))])
    write_log(tmp_path, [teller.tell(RunFinished(reason="completed"))])
    watch(tmp_path, plain=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("training starts")
    assert lines[-1].startswith("training finished at step 1: reached 1 steps")


def test_ctrl_c_leaves_quietly_and_gives_the_signal_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGINT)
    write_log(tmp_path, [Teller().step(1)])
    monkeypatch.setattr(
        "tandem.observe.watch.follow.time.sleep", lambda _seconds: os.kill(os.getpid(), signal.SIGINT)
    )
    watch(tmp_path)
    printed = capsys.readouterr()
    assert printed.out.startswith("step 1, epoch 1, ")
    assert printed.err == ""
    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_without_a_log_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no run log in .*nowhere/log"):
        watch(tmp_path / "nowhere")


def test_a_terminal_that_cannot_draw_gets_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    teller = Teller()
    write_log(
        tmp_path, [teller.tell(started()), teller.step(1), teller.tell(RunFinished(reason="completed"))]
    )
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    watch(tmp_path)
    assert capsys.readouterr().out.startswith("training starts")
