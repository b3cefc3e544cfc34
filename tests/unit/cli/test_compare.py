"""`tandem compare`: the terminal, the page, the JSON, and translations compared sentence by sentence."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.unit.observe.story import Teller, finished, training, write_log
from typer.testing import CliRunner

from tandem.artefact import building
from tandem.cli.compare import CompareCommand, compare
from tandem.data.corpus.held_out import KIND, VERSION
from tandem.errors import TandemError
from tandem.runlog.event import RunFinished, TranslationScored
from tandem.runlog.record import Record
from tandem.translate.score import score

REFERENCES = [f"Der Hund Nummer {number} sah am Abend den alten Baum am See ." for number in range(60)]


def translations(wrong: int) -> list[str]:
    """Every so many-th misses a word."""
    return [
        line.replace("alten ", "") if number % wrong == 0 else line for number, line in enumerate(REFERENCES)
    ]


def make(run: Path, lines: Sequence[str], *, references: Sequence[str] | None = REFERENCES) -> Path:
    """A run of 200 steps that was scored once, with its translations and perhaps the valid text."""
    teller = Teller()
    told = [_scored(record, lines) for record in training(teller, steps=200)]
    write_log(run, [*told, teller.tell(finished(200)), teller.tell(RunFinished(reason="completed"))])
    (run / "recipe.yaml").write_text(f"name: {run.name}\nseed: 1\nmodel:\n  width: {len(run.name)}\n")
    kept = run / "hypotheses" / "step-00000200" / "valid.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("".join(f"{line}\n" for line in lines))
    if references is not None:
        with building(run / "data/held-out/valid/text", kind=KIND, version=VERSION, fingerprint="x") as build:
            for side in ("source", "target"):
                (build.path / f"{side}.txt").write_text("".join(f"{line}\n" for line in references))
            build.facts = {"name": "valid", "pairs": len(references)}
    return run


def _scored(record: Record, lines: Sequence[str]) -> Record:
    if not isinstance(record.event, TranslationScored):
        return record
    found = score(lines, REFERENCES)
    event = replace(
        record.event,
        bleu=found.bleu,
        bleu_low=found.bleu_low,
        bleu_high=found.bleu_high,
        bleu_signature=found.bleu_signature,
        sentences=found.sentences,
    )
    return replace(record, event=event)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return make(tmp_path / "good", translations(7)), make(
        tmp_path / "worse", translations(3), references=None
    )


def invoke(*words: str | Path) -> str:
    app = typer.Typer()
    app.command(cls=CompareCommand)(compare)
    result = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(result.exception, TandemError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def best_bleu(*words: str | Path) -> dict[str, Any]:
    held = json.loads(invoke(*words, "--json"))
    found: dict[str, Any] = next(
        each for each in held["judgements"] if each["question"]["key"] == "bleu_best"
    )
    return found


def test_runs_are_compared_in_the_terminal(runs: tuple[Path, Path]) -> None:
    text = invoke(*runs)
    assert "model.width" in text
    assert "Best BLEU" in text


def test_translations_are_compared_with_references_that_one_run_has(runs: tuple[Path, Path]) -> None:
    for order in (runs, runs[::-1]):
        found = best_bleu(*order)
        assert (found["verdict"], found["better"]) == ("better", "good")
        assert "paired bootstrap of 60 sentences" in found["why"]


def test_equal_translations_are_not_told_apart(tmp_path: Path) -> None:
    pair = make(tmp_path / "one", translations(7)), make(tmp_path / "other", translations(7))
    found = best_bleu(*pair)
    assert found["verdict"] == "inside noise"
    assert "p = 1.000" in found["why"]


@pytest.mark.parametrize("spoil", ["references", "translations", "outside"])
def test_what_does_not_give_the_logged_bleu_is_not_used(runs: tuple[Path, Path], spoil: str) -> None:
    """The log stands; the intervals of its scores decide."""
    run = runs[0]
    kept = run / "hypotheses/step-00000200/valid.txt"
    if spoil == "references":
        text = run / "data/held-out/valid/text/target.txt"
        text.write_text("".join(f"{line}\n" for line in translations(2))[: text.stat().st_size])
    elif spoil == "translations":
        kept.write_text("".join(f"{line}\n" for line in REFERENCES))
    else:
        (run.parent / "valid.txt").write_bytes(kept.read_bytes())
        kept.unlink()
        kept.symlink_to(run.parent / "valid.txt")
    found = best_bleu(*runs)
    assert "paired" not in found["why"]
    assert "intervals" in found["why"]


def test_the_page_goes_where_it_is_named_or_here(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    invoke(*runs, "--html", tmp_path / "page.html")
    invoke("--html", *runs)
    invoke(runs[0], "--html", runs[1])
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "compare.html").read_bytes()
    assert b"<!doctype html>" in (tmp_path / "page.html").read_bytes()


@pytest.mark.parametrize(
    ("names", "told"), [(["good"], "at least two"), (["good", "gone"], "There is no run")]
)
def test_what_cannot_be_compared_is_one_sentence(
    runs: tuple[Path, Path], names: list[str], told: str
) -> None:
    with pytest.raises(TandemError, match=told):
        invoke(*(runs[0].parent / name for name in names))
