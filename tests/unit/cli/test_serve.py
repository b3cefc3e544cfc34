"""`tandem serve`: what its words mean."""

from pathlib import Path

import pytest
import typer
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
