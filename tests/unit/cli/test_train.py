"""`--exchange` beside overrides: what both name must be the same."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.cli.app import app
from tandem.cli.train import ordered
from tandem.errors import TandemError

RECIPE = Path(__file__).parents[3] / "recipes" / "demo.yaml"


@pytest.mark.parametrize("command", ["train", "resume"])
@pytest.mark.parametrize(
    ("override", "mode"),
    [
        ("exchange.mode=exact", "exact"),
        ("exchange={mode: bf16}", "bf16"),
        (" exchange.mode = 'auto'", "auto"),
    ],
)
def test_another_mode_than_that_of_the_option_is_refused(
    command: str, override: str, mode: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = [str(RECIPE), "--run", str(run)]
    if command == "resume":
        run.mkdir()
        (run / "recipe.yaml").write_bytes(RECIPE.read_bytes())
        words = [str(run)]
    result = CliRunner().invoke(app, [command, *words, "train.max_steps=5", override, "--exchange", "packed"])
    assert isinstance(result.exception, TandemError)
    told = f"--exchange packed contradicts exchange.mode={mode}: take one of them out."
    assert str(result.exception) == told


def test_without_a_contradiction_the_option_comes_last() -> None:
    assert ordered(None, "") == []
    assert ordered(["exchange.mode=exact"], "") == ["exchange.mode=exact"]
    assert ordered(["exchange.mode=packed"], "packed") == ["exchange.mode=packed", "exchange.mode=packed"]
    assert ordered(["nonsense", "exchange=[1]"], "auto") == ["nonsense", "exchange=[1]", "exchange.mode=auto"]
