import signal
import sys

import pytest

from tandem import __version__
from tandem.cli.app import main


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tandem", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"tandem {__version__}\n"


def test_no_command_shows_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch)
    printed = capsys.readouterr()
    assert "demo" in printed.out + printed.err


def test_an_error_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "data", "prepare", "absent.yaml") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert "absent.yaml" in printed.err


@pytest.mark.parametrize(
    ("command", "says"),
    [("train", "what is finished is kept; run the same command to go on."), ("translate", "Stopped.")],
)
def test_ctrl_c_says_what_is_kept_only_where_something_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    monkeypatch.setattr("tandem.cli.app.app", lambda: signal.raise_signal(signal.SIGINT))
    assert run(monkeypatch, command) == 130
    assert capsys.readouterr().err.removeprefix("\ninterrupted: ").strip() == says


def test_an_unknown_command_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "frobnicate") == 2
