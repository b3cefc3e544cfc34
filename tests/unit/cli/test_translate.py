"""`tandem translate`: lines through a pipe, and sentences typed by a person."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import typer
from tests.unit.translate.small_model import SENTENCES, write_run, write_subword
from typer.testing import CliRunner

from tandem.checkpoint.layout import step_folder
from tandem.cli import translate as command
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout
from tandem.translate.open import open_translator

BEST = 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which the second checkpoint has the best BLEU."""
    folder = tmp_path_factory.mktemp("runs")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 3.0, BEST: 9.0, 30: 5.0})
    return folder / "run"


def checkpoint(run: Path, step: int) -> Path:
    return step_folder(RunLayout(run).checkpoints, step)


def expected(run: Path, lines: list[str], *, step: int = BEST, beam: int | None = None) -> list[str]:
    translator = open_translator(checkpoint(run, step), torch.device("cpu"), beam=beam)
    return [translation.text for translation in translator.translate(lines)]


def invoke(*arguments: str | Path, text: str | bytes) -> str:
    app = typer.Typer()
    app.command()(command.translate)
    result = CliRunner().invoke(app, [*map(str, arguments), "--device", "cpu"], input=text)
    if isinstance(result.exception, TandemError):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def test_each_line_becomes_a_line_by_the_best_checkpoint(run: Path) -> None:
    lines = [SENTENCES[0], "", SENTENCES[1]]
    printed = invoke(run, text="\n".join(lines))
    assert printed == "".join(f"{line}\n" for line in expected(run, lines))


def test_a_checkpoint_folder_and_a_beam_can_be_named(run: Path) -> None:
    lines = SENTENCES[:3]
    printed = invoke(checkpoint(run, 10), "--beam", "1", text="\n".join(lines))
    assert printed.splitlines() == expected(run, lines, step=10, beam=1)


def test_lines_end_at_newlines_only_and_carriage_returns_before_them_are_dropped(run: Path) -> None:
    printed = invoke(run, text="the cat\r\nthe\u2028dog\n".encode())
    assert printed.splitlines() == expected(run, ["the cat", "the dog"])


def test_many_lines_come_in_order_through_several_chunks(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CHUNK_LINES", 2)
    printed = invoke(run, "--beam", "1", text="\n".join(SENTENCES[:5]))
    assert printed.splitlines() == expected(run, SENTENCES[:5], beam=1)
    with pytest.raises(TandemError, match="Line 4 has"):
        invoke(run, text="\n".join(["a", "b", "c", "b " * 1_025]))


def test_bad_input_is_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="Line 2 of the input is not UTF-8"):
        invoke(run, text=b"a\n\xff\n")
    with pytest.raises(TandemError, match="neither a checkpoint"):
        invoke(tmp_path, text="a")
    with pytest.raises(TandemError, match="no device 'tpu': use cpu, cuda or auto"):
        command._find_device("tpu")


def test_without_a_gpu_auto_means_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command._find_device("auto").type == "cpu"
    with pytest.raises(TandemError, match="no GPU"):
        command._find_device("cuda")


def test_a_person_gets_each_answer_at_once_and_ends_with_ctrl_d(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed: Iterator[str] = iter([SENTENCES[0], "b " * 1_025, SENTENCES[1]])

    def answer(prompt: str) -> str:
        assert prompt == "> "
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", answer)
    terminal = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    command.translate(run, device="cpu")
    printed = capsys.readouterr()
    assert printed.out.splitlines() == expected(run, SENTENCES[:2])
    assert "Ctrl-D ends" in printed.err
    assert "error: Line 1 has" in printed.err
