import os
import pty
import signal
import subprocess
import sys

import pytest

from tandem import __version__
from tandem.cli.app import main
from tandem.errors import TandemError


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


ECHO = """
from tandem.cli import app

app.app = lambda: print(input())
app.main()
"""
ASCII_LOCALE = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}


def test_what_goes_through_pipes_is_utf8_whatever_the_locale() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ECHO],
        env=ASCII_LOCALE,
        input="schläft 眠る\n".encode(),
        capture_output=True,
        check=True,
    )
    assert ended.stdout.decode() == "schläft 眠る\n"


def test_a_terminal_without_utf8_shows_a_question_mark() -> None:
    reader, writer = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", ECHO],
        env=ASCII_LOCALE,
        input="schläft\n".encode(),
        stdout=writer,
        stderr=subprocess.PIPE,
        check=True,
    )
    shown = os.read(reader, 100)
    os.close(writer)
    os.close(reader)
    assert shown == b"schl?ft\r\n"


def test_an_unknown_command_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "frobnicate") == 2


@pytest.mark.parametrize("error", [TandemError("odd \x1b]0;x\x07"), OSError(2, "odd \x9b2J", "/\x1b[31m")])
def test_an_error_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("tandem.cli.app.app", fail)
    assert run(monkeypatch) == 1
    told = capsys.readouterr().err
    assert "odd \\x" in told
    assert not any(letter in told for letter in "\x1b\x9b\x07")


def test_all_that_a_command_starts_leaves_the_working_folder_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    seen: list[str | None] = []
    monkeypatch.setattr("tandem.cli.app.app", lambda: seen.append(os.environ.get("PYTHONSAFEPATH")))
    main()
    assert seen == ["1"]
    assert "PYTHONSAFEPATH" not in os.environ
