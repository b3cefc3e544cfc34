"""Advice names only what there is: settings of the recipe, commands, and their options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from tandem.cli.app import app
from tandem.config.recipe import Recipe

SOURCE = Path(__file__).resolve().parents[3] / "src" / "tandem"
SPEAKING = sorted(
    path for part in ("observe", "launch/doctor", "estimate") for path in (SOURCE / part).rglob("*.py")
)
SECTIONS = {
    name: set(field.annotation.model_fields)
    for name, field in Recipe.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
SETTING = re.compile(rf"(?<![\w./])({'|'.join(SECTIONS)})\.([a-z][a-z0-9_]*)(?![\w(])")
OPTION = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z-]*(?![\w:-])")
COMMAND = re.compile(r"(?<![\w.])tandem ([a-z]+)(?: ([a-z]+))?")
NO_SETTINGS = {"data.json", "data.py", "model.ckpt", "model.safetensors", "subword.model"}
"""Names of files."""
OF_OTHERS = {"--query-gpu", "--format", "--beside"}
"""Options of programs that are started, not of what a person types."""


def told(path: Path) -> Iterator[str]:
    """What the strings of a module say, apart from what is written for those who read it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def commands(group: Any, before: str = "tandem") -> Iterator[tuple[str, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        yield f"{before} {name}", command
        yield from commands(command, f"{before} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))
OPTIONS = {
    option
    for command in COMMANDS.values()
    for parameter in command.params
    for option in (*parameter.opts, *parameter.secondary_opts)
}


def unknown_in(text: str) -> Iterator[str]:
    """All that a text names and that is not there."""
    for section, key in SETTING.findall(text):
        if f"{section}.{key}" not in NO_SETTINGS and key not in SECTIONS[section]:
            yield f"{section}.{key}"
    yield from (
        option for option in OPTION.findall(text) if option not in OPTIONS | OF_OTHERS and option != "--help"
    )
    for first, second in COMMAND.findall(text):
        command = COMMANDS.get(f"tandem {first}")
        if command is None:
            yield f"tandem {first}"
        elif second and hasattr(command, "commands") and f"tandem {first} {second}" not in COMMANDS:
            yield f"tandem {first} {second}"


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_is_said_names_only_settings_commands_and_options_that_there_are(path: Path) -> None:
    assert [name for text in told(path) for name in unknown_in(text)] == []


def test_what_is_not_there_is_found() -> None:
    text = "Set optim.zeal and batch.target_tokens by tandem dance or tandem train --quickly."
    assert list(unknown_in(text)) == ["optim.zeal", "--quickly", "tandem dance"]
