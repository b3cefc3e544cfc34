"""`tandem translate`: lines through a pipe or from a file, in every format."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import typer
from tests.unit.translate.small_model import SENTENCES, write_run, write_subword
from typer.testing import CliRunner

from tandem.checkpoint.layout import step_folder
from tandem.cli import translate as command
from tandem.cli.library import load_translator
from tandem.data.subword.learn import open_subword
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout
from tandem.translate.engine import Found, Sentence
from tandem.translate.penalty import LengthPenalty
from tandem.translate.translator import Translation, Translator
from tandem.translate.wish import Sampling, Wish

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


def translated(
    run: Path,
    lines: list[str],
    wish: Wish | None = None,
    *,
    step: int = BEST,
    prefixes: list[str] | None = None,
) -> list[Translation]:
    translator = load_translator(checkpoint(run, step), engine="torch", device="cpu")
    return translator.translate(lines, wish, prefixes=prefixes)


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def invoke(*arguments: str | Path, text: str | bytes) -> str:
    app = typer.Typer()
    app.command()(command.translate)
    words = [*map(str, arguments), "--device", "cpu", "--engine", "torch"]
    result = CliRunner().invoke(app, words, input=text)
    if isinstance(result.exception, TandemError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_line_becomes_a_line_by_the_best_checkpoint(run: Path) -> None:
    lines = [SENTENCES[0], "", SENTENCES[1]]
    printed = invoke(run, text="\n".join(lines))
    assert printed == "".join(f"{line}\n" for line in texts(translated(run, lines)))


def test_a_checkpoint_folder_and_a_beam_can_be_named(run: Path) -> None:
    lines = SENTENCES[:3]
    expected = texts(translated(run, lines, Wish(beam=1), step=10))
    assert invoke(checkpoint(run, 10), "--beam", "1", text="\n".join(lines)).splitlines() == expected
    assert invoke(checkpoint(run, 10), "--greedy", text="\n".join(lines)).splitlines() == expected


def test_lines_end_at_newlines_only_and_carriage_returns_before_them_are_dropped(run: Path) -> None:
    printed = invoke(run, text="the cat\r\nthe\u2028dog\n".encode())
    assert printed.splitlines() == texts(translated(run, ["the cat", "the dog"]))


@pytest.mark.parametrize(("limit", "value"), [("CHUNK_LINES", 2), ("CHUNK_BYTES", 50)])
def test_many_lines_come_in_order_through_several_chunks(
    run: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(command, limit, value)
    printed = invoke(run, "--greedy", "--scores", text="\n".join(SENTENCES[:5]))
    expected = translated(run, SENTENCES[:5], Wish(beam=1))
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [
        (str(number), each.text) for number, each in enumerate(expected, start=1)
    ]
    with pytest.raises(TandemError, match="Line 4 of the input is not UTF-8"):
        invoke(run, "--greedy", text=b"a\nb\nc\n\xff\n")


def test_a_line_over_the_models_limit_is_translated_in_parts(run: Path) -> None:
    printed = invoke(run, "--greedy", text=" ".join(SENTENCES[:60]))
    assert len(printed.splitlines()) == 1
    assert printed.startswith(texts(translated(run, SENTENCES[:1], Wish(beam=1)))[0])


def test_sentences_of_a_line_are_translated_apart_unless_whole_lines_are_asked_for(run: Path) -> None:
    line = " ".join(SENTENCES[:2])
    apart = " ".join(texts(translated(run, SENTENCES[:2])))
    assert invoke(run, text=line) == invoke(run, "--sentences", text=line) == f"{apart}\n"
    assert invoke(run, "--whole-lines", text=line) != f"{apart}\n"


def test_the_best_n_come_in_columns_with_line_rank_and_score(run: Path) -> None:
    printed = invoke(run, "--best", "3", text=f"{SENTENCES[0]}\n\n{SENTENCES[1]}\n")
    found = translated(run, [SENTENCES[0], "", SENTENCES[1]], Wish(beam=3, best=3))
    expected = [
        f"{number}\t{rank}\t{each.score:.4f}\t{each.text}"
        for number, best in enumerate(found, start=1)
        for rank, each in enumerate((best, *best.others), start=1)
    ]
    assert printed.split("\n") == [*expected, ""]
    bare = invoke(run, "--best", "3", "--format", "text", text=SENTENCES[0])
    assert bare.splitlines() == [found[0].text, *texts(list(found[0].others))]


def test_pieces_and_alignment_come_as_json(run: Path) -> None:
    printed = invoke(run, "--tokens", "--alignment", "--best", "2", text=f"{SENTENCES[0]}\n\n")
    first, second = map(json.loads, printed.splitlines())
    wish = Wish(beam=2, best=2, token_scores=True, alignment=True)
    (found,) = translated(run, [SENTENCES[0]], wish)
    assert (first["line"], first["text"], first["pieces"]) == (1, found.text, found.pieces)
    assert [text for text, _ in first["tokens"]] == [token.text for token in found.tokens]
    assert first["alignment"] == [[list(link.source), list(link.target)] for link in found.alignment]
    assert first["others"][0]["text"] == found.others[0].text
    assert second == {"line": 2, "text": "", "score": 0.0, "pieces": 0, "tokens": [], "alignment": []}


def test_the_penalty_can_be_chosen(run: Path) -> None:
    printed = invoke(run, "--alpha", "1", "--penalty", "power", "--scores", text=SENTENCES[0])
    wish = Wish(beam=2, penalty=LengthPenalty(alpha=1, kind="power"))
    assert float(printed.split("\t")[2]) == pytest.approx(
        translated(run, SENTENCES[:1], wish)[0].score, abs=1e-4
    )


def test_samples_are_drawn_by_seed(run: Path) -> None:
    words = ("--sample", "--temperature", "0.5", "--top", "9", "--best", "2", "--format", "text")
    wish = Wish(beam=2, best=2, sampling=Sampling(temperature=0.5, top=9, seed=3))
    (found,) = translated(run, SENTENCES[:1], wish)
    printed = invoke(run, *words, "--seed", "3", text=SENTENCES[0])
    assert printed.splitlines() == texts([found, *found.others])
    assert printed != invoke(run, *words, "--seed", "4", text=SENTENCES[0])


def test_prefixes_come_from_a_file_a_line_each(run: Path, tmp_path: Path) -> None:
    lines, prefixes = SENTENCES[:3], ["the cat", "", "a"]
    file = tmp_path / "prefixes"
    file.write_text("".join(f"{prefix}\n" for prefix in prefixes))
    printed = invoke(run, "--prefix-file", file, text="\n".join(lines))
    assert printed.splitlines() == texts(translated(run, lines, prefixes=prefixes))
    with pytest.raises(TandemError, match="has more lines than the input, which has 2"):
        invoke(run, "--prefix-file", file, text="a\nb\n")
    with pytest.raises(TandemError, match="has 3 lines, fewer than the input"):
        invoke(run, "--prefix-file", file, text="a\nb\nc\nd\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--greedy", "--sample"], "--greedy goes neither"),
        (["--greedy", "--beam", "4"], "--greedy goes neither"),
        (["--seed", "4"], "add --sample"),
        (["--sample", "--beam", "3"], "take --beam out"),
        (["--sample", "--temperature", "0"], "must be above 0"),
        (["--beam", "2", "--best", "3"], "raise --beam"),
        (["--format", "text", "--scores"], "no place for --scores"),
        (["--format", "tsv", "--tokens"], "take --format json"),
        (["--interactive", "--prefix-file", "none"], "not with typed sentences"),
    ],
)
def test_options_that_contradict_each_other_are_refused(run: Path, words: list[str], sentence: str) -> None:
    with pytest.raises(TandemError, match=sentence):
        invoke(run, *words, text="a")


def test_bad_input_is_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="Line 2 of the input is not UTF-8"):
        invoke(run, text=b"a\n\xff\n")
    with pytest.raises(TandemError, match="neither a checkpoint"):
        invoke(tmp_path, text="a")


def test_a_person_gets_each_answer_at_once_and_ends_with_ctrl_d(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed: Iterator[str] = iter(SENTENCES[:2])

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
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("XDG_STATE_HOME", str(run.parent / "state"))
    command.translate(run, device="cpu", engine="torch")
    printed = capsys.readouterr()
    assert printed.out.splitlines() == texts(translated(run, SENTENCES[:2]))
    assert "Ctrl-D ends" in printed.err
    assert (run.parent / "state" / "tandem" / "translate-history").stat().st_mode & 0o077 == 0


def test_no_prompt_stands_among_translations_that_go_elsewhere(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(run.parent / "state"))
    printed = invoke(run, "--interactive", text="".join(f"{line}\n" for line in SENTENCES[:2]))
    assert printed.splitlines() == texts(translated(run, SENTENCES[:2]))


def test_progress_is_told_where_the_input_is_a_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in SENTENCES[:4]))
    with file.open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        command.translate(run, device="cpu", engine="torch")
    printed = capsys.readouterr()
    assert printed.out.splitlines() == texts(translated(run, SENTENCES[:4]))
    assert printed.err.startswith("translating: 0.0 MB")


class Ahead:
    """Says what it hears, and takes all that there is before it says anything."""

    name = "ahead"

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        return [[Found(ids=sentence.source, score=-1.0)] * wish.best for sentence in sentences]

    def stream(self, chunks: Iterable[Sequence[Sentence]], wish: Wish) -> Iterator[list[list[Found]]]:
        yield from [self.search(chunk, wish) for chunk in chunks]


def test_of_a_file_the_lines_before_a_bad_one_are_translated_by_an_engine_that_works_ahead(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    translator = Translator(Ahead(), open_subword(run.parent / "subword"))
    monkeypatch.setattr("tandem.cli.library.load_translator", lambda *_, **__: translator)
    monkeypatch.setattr(command, "CHUNK_LINES", 2)
    file = tmp_path / "lines"
    file.write_bytes("".join(f"{line}\n" for line in SENTENCES[:4]).encode() + b"\xff\n")
    with file.open() as lines, pytest.raises(TandemError, match="Line 5 of the input is not UTF-8"):
        monkeypatch.setattr("sys.stdin", lines)
        command.translate(run)
    assert capsys.readouterr().out.splitlines() == SENTENCES[:4]


def test_a_closed_pipe_ends_with_one_line_and_its_own_code(run: Path) -> None:
    words = [str(run), "--engine", "torch", "--device", "cpu", "--greedy"]
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "tandem", "translate", *words],
        input=SENTENCES[0],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert ended.returncode == 141
    assert ended.stderr == "stopped: nothing reads the translations any more.\n"
