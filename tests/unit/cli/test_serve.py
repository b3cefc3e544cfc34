"""`tandem serve`: what its words mean."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import typer
from tests.unit.serve.fake import DEADLINE_S
from typer.testing import CliRunner

from tandem.cli.serve import name_models, serve
from tandem.errors import TandemError


def test_models_are_named_after_their_folders_or_as_is_said(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    named = name_models([str(tmp_path / "demo"), "mine=runs/x"])
    assert named == {"demo": tmp_path / "demo", "mine": Path("runs/x")}
    assert name_models([f"mine={tmp_path}/a=b"]) == {"mine": tmp_path / "a=b"}
    with pytest.raises(TandemError, match="cannot be called 'a=b'"):
        name_models([str(tmp_path / "a=b")])
    with pytest.raises(TandemError, match="Two models are called 'x'"):
        name_models(["runs/x", "x=other"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cors", "example.org"], "not an origin"),
        (["--api-keys-file", "nowhere"], "nowhere"),
        (["--api-keys-file", "/dev/null"], "/dev/null is not a file"),
        (["--allow-host", "https://example.org"], "not the name of a host"),
        (["--host", "no such host"], "--host"),
        (["--port", "0"], "neither a checkpoint"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(tmp_path: Path, words: list[str], says: str) -> None:
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, [str(tmp_path), *words])
    assert isinstance(result.exception, TandemError | OSError)
    assert says in str(result.exception)


@pytest.mark.parametrize("words", [[], ["--whole-lines"]])
def test_lines_are_translated_by_sentences_unless_whole_ones_are_asked_for(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def load(*_: object, sentences: bool, **__: object) -> None:
        asked.append(sentences)
        raise TandemError("No model is needed here.")

    monkeypatch.setattr("tandem.cli.library.load_translator", load)
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, [str(tmp_path), "--port", "0", *words])
    assert str(result.exception) == "No model is needed here."
    assert asked == [not words]


@pytest.mark.parametrize("deadline", ["inf", "nan", "1e9"])
def test_a_deadline_that_never_comes_is_refused(tmp_path: Path, deadline: str) -> None:
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, [str(tmp_path), "--deadline", deadline])
    assert result.exit_code == 2
    assert "--deadline" in result.output


SERVER = """
from tests.unit.serve.fake import Fake, served
from tandem.cli.serve import _serve
from tandem.serve.keys import ApiKeys
from tandem.serve.limits import Limits
from tandem.web.listening import listen

stuck = Fake()
stuck.open.clear()
with listen("127.0.0.1", 0) as bound:
    _serve([served(stuck)], bound, limits=Limits(deadline_s=0.1), keys=ApiKeys(), origins=[])
"""


def test_the_process_ends_at_once_while_a_translation_goes_on_and_however_often_it_is_asked() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        with httpx.Client(base_url=address, timeout=DEADLINE_S) as client:
            assert client.post("/translate", json={"text": "a"}).status_code == 503
            for number in (signal.SIGINT, signal.SIGTERM):
                process.send_signal(number)
            # The translator is stuck for longer.
            assert process.wait(DEADLINE_S / 2) == 0
        last = process.stderr.read().splitlines()[-1]
    assert last == "Ended: every request that was taken on is answered."
