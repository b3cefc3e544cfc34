"""What the pages in docs tell people to type is there, and what they link to."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.cli.app import app
from tandem.config import load_recipe

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
TRAINING = (DOCS / "training.md").read_text(encoding="utf-8")
BLOCKS = "\n".join(re.findall(r"^```\n(.*?)^```$", TRAINING, flags=re.MULTILINE | re.DOTALL))
LINES = [re.split(r" {2,}", line)[0] for line in BLOCKS.splitlines()]
COMMANDS = [shlex.split(line)[1:] for line in LINES if line.startswith("tandem ")]
TORCHRUN = [shlex.split(line)[1:] for line in LINES if line.startswith("torchrun ")]
PAGES = [*sorted(DOCS.rglob("*.md")), REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "benchmarks/README.md"]
LINKS = [
    (page.relative_to(REPOSITORY), target)
    for page in PAGES
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", page.read_text(encoding="utf-8"))
]


def help_of(command: str) -> str:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_page_on_training_shows_every_command_of_training() -> None:
    shown = {words[0] for words in COMMANDS}
    assert {"train", "resume", "watch", "checkpoints", "average", "translate"} <= shown
    assert TORCHRUN


def test_the_page_on_security_says_of_every_command_what_it_opens_reads_and_writes() -> None:
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    section = page.split("## What each command opens")[1].split("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {words.split()[0] for cell in first_cells for words in re.findall(r"`([^`]+)`", cell)}
    groups = {group.name for group in app.registered_groups}
    assert named == {command.name for command in app.registered_commands} | groups


@pytest.mark.parametrize("command", sorted({words[0] for words in COMMANDS}))
def test_every_option_shown_is_one_of_its_command(command: str) -> None:
    known = set(re.findall(r"--[a-z-]+", help_of(command)))
    used = {word for words in COMMANDS if words[0] == command for word in words if word.startswith("--")}
    assert used <= known


def test_the_options_of_train_are_all_explained() -> None:
    explained = set(re.findall(r"^\| `(--[a-z-]+)", TRAINING, flags=re.MULTILINE))
    assert explained == set(re.findall(r"^  (--[a-z-]+)", help_of("train"), flags=re.MULTILINE)) - {"--help"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_values_shown_on_the_command_line_fit_the_recipe(words: list[str]) -> None:
    overrides = [word for word in words if re.match(r"[a-z_]+\.[a-z_.]+=", word)]
    assert load_recipe(REPOSITORY / "recipes/demo.yaml", overrides).recipe.name == "demo"


@pytest.mark.parametrize("words", TORCHRUN, ids=" ".join)
def test_torchrun_leaves_our_options_to_us(words: list[str]) -> None:
    from torch.distributed.run import parse_args

    options = parse_args(words)  # type: ignore[no-untyped-call]
    assert (options.module, options.training_script) == (True, "tandem")
    assert options.training_script_args == words[words.index("tandem") + 1 :]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=str)
def test_every_link_leads_somewhere(page: Path, target: str) -> None:
    assert (REPOSITORY / page.parent / target).exists()
