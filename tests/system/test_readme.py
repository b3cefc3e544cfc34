"""What README.md tells people to type is there."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.cli.app import app

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^tandem ((?:data|config) [a-z]+|[a-z]+)", README, flags=re.MULTILINE)


def test_the_readme_has_commands() -> None:
    assert {"train", "resume", "translate", "config show", "data prepare", "data get"} <= set(COMMANDS)


@pytest.mark.parametrize("words", sorted(set(COMMANDS)))
def test_every_command_has_help(words: str) -> None:
    done = CliRunner().invoke(app, [*words.split(), "--help"])
    assert done.exit_code == 0, done.output
    assert "Usage" in done.stdout


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^make ([a-z]+)", README, flags=re.MULTILINE))))
def test_every_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_every_link_leads_somewhere(path: str) -> None:
    assert (REPOSITORY / path).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"recipes/[a-z0-9-]+\.yaml", README))))
def test_every_recipe_named_is_there(path: str) -> None:
    assert (REPOSITORY / path).is_file()
