import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
import typer
from tests.unit.observe.sinks.told_twice import RECIPE, told
from tests.unit.observe.story import Teller, write_log
from typer.testing import CliRunner

from tandem.cli.app import app
from tandem.cli.forward import _ended_by_signals, _until_let_go, forwarding
from tandem.errors import TandemError
from tandem.observe.sinks import beside
from tandem.observe.sinks.beside import Beside, start_beside

DOCS = Path(__file__).parents[3] / "docs/sinks.md"
BLOCKS = "\n".join(re.findall(r"^```\n(.*?)^```$", DOCS.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL))
COMMANDS = [
    shlex.split(re.split(r" {2,}", line)[0])[1:] for line in BLOCKS.splitlines() if line.startswith("tandem ")
]
REFUSES = "import sys; print('Traceback'); print('error: There is no such place.'); sys.exit(1)"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "story"
    folder.mkdir()
    (folder / "recipe.yaml").write_bytes(RECIPE.read_bytes())
    write_log(folder, list(told(Teller())))
    return folder


def started(run: Path, code: str) -> Beside:
    return start_beside(run, "wandb", command=(sys.executable, "-c", code))


def test_a_run_and_a_tool_that_are_not_there_are_one_sentence(run: Path, tmp_path: Path) -> None:
    for words, sentence in (
        ([str(tmp_path / "none"), "--to", "wandb"], "There is no run log"),
        ([str(run), "--to", "comet"], "choose one of wandb, mlflow, trackio"),
    ):
        result = CliRunner().invoke(app, ["forward", *words])
        assert isinstance(result.exception, TandemError)
        assert sentence in str(result.exception)


def test_training_with_a_tool_that_is_not_known_never_begins(tmp_path: Path) -> None:
    words = ["train", str(RECIPE), "--run", str(tmp_path / "run"), "--forward", "comet"]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, TandemError)
    assert not (tmp_path / "run").exists()
    (tmp_path / "old").mkdir()
    result = CliRunner().invoke(app, ["resume", str(tmp_path / "old"), "--forward", "comet"])
    assert "choose one of" in str(result.exception)


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_only_noted_and_the_next_is_not(first: signal.Signals) -> None:
    caught = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in caught]
    with _ended_by_signals() as is_left:
        assert not is_left()
        signal.raise_signal(first)
        assert is_left()
        assert [signal.getsignal(number) for number in caught] == before
    assert [signal.getsignal(number) for number in caught] == before


def test_beside_a_run_it_ends_when_that_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    given_up = Event()
    with open(reading) as stream:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr("sys.stdin", stream)
        is_let_go = _until_let_go(given_up.set, last_s=0.0)
        assert not is_let_go()
        assert not given_up.is_set()
        os.close(writing)
        assert given_up.wait(60)
        assert is_let_go()


HANGS = """
import sys, time
from tandem.cli import forward
forward.LAST_S = 0.0
is_let_go = forward._until_let_go(lambda: forward._give_up("Trackio"), last_s=0.0)
print("hangs", flush=True)
while True:
    time.sleep(1)
"""


def test_a_tool_that_hangs_does_not_outlive_the_run_for_ever() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"hangs\n"
        _, said = child.communicate(timeout=60)
    assert child.returncode == 1
    assert said.startswith(b"error: Trackio did not take the rest")


def test_no_tool_starts_nothing(tmp_path: Path) -> None:
    with forwarding(tmp_path, "") as sinks:
        assert sinks == []
    assert not list(tmp_path.iterdir())


def test_a_child_that_fails_is_told_of_in_its_own_words_and_nothing_is_raised(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside, "start_beside", lambda run, _tool: started(run, REFUSES))
    with forwarding(run, "wandb") as (child,):
        assert isinstance(child, Beside)
    child.flush()
    sentence = "nothing is forwarded to Weights & Biases: There is no such place."
    assert child.failure == sentence
    assert sentence in capsys.readouterr().err


def test_a_child_that_goes_well_reads_until_it_is_let_go(run: Path) -> None:
    child = started(run, "import sys; sys.stdin.read(); print(sys.argv[1:])")
    child.flush()
    assert not child.failure
    child.finish()
    assert not child.failure
    said = (run / "forward/wandb.txt").read_text()
    assert said.strip() == str(["forward", str(run.resolve()), "--to", "wandb", "--beside"])


def test_a_child_that_goes_on_is_told_of_with_its_number(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside, "FINISH_S", 0.01)
    child = started(run, "import time; time.sleep(600)")
    assert child.process is not None
    monkeypatch.setattr(beside, "start_beside", lambda _run, _tool: child)
    try:
        with forwarding(run, "wandb"):
            pass
        told = f"still being forwarded to Weights & Biases, by process {child.process.pid}: see "
        assert told in capsys.readouterr().err
    finally:
        child.process.kill()
        child.process.wait()


def test_a_child_that_says_nothing_useful_leads_to_its_file(run: Path) -> None:
    child = started(run, "import os; os._exit(3)")
    child.finish()
    assert child.failure.endswith(f"see {run / 'forward/wandb.txt'}")


def test_a_child_that_cannot_be_started_is_told_of(run: Path) -> None:
    child = start_beside(run, "wandb", command=("/nothing/here",))
    child.flush()
    child.finish()
    assert child.failure == "forwarding to Weights & Biases could not be started"


def test_the_real_command_beside_a_run_forwards_all_of_it(run: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tandem", "forward", str(run), "--to", "trackio", "--beside"],
        env=os.environ | {"TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is in Trackio, whole." in done.stdout
    assert list((tmp_path / "trackio").glob("tandem*.db"))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_shown_can_be_given(words: list[str]) -> None:
    command = typer.main.get_command(app)
    with command.make_context("tandem", list(words), resilient_parsing=False) as context:
        named = context.command.get_command(context, words[0])  # type: ignore[attr-defined]
        assert named.make_context(words[0], words[1:], parent=context).params
