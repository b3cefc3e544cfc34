"""The command `tandem score`."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import sacrebleu
import torch
from typer.testing import CliRunner, Result

from tandem.cli.app import app
from tandem.errors import TandemError
from tandem.translate.score import score

REFERENCES = ["Der Hund läuft durch den Garten.", "Die Katze schläft.", "Wir lesen heute drei Bücher!"] * 10
HYPOTHESES = ["Der Hund rennt durch den Garten.", "Die Katze schläft.", "Wir lesen drei Bücher!"] * 10


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Files with the lines above, and with a bad translation of them."""
    bad = ["Ein Hund.", "Katze schläft die.", "drei Bücher"] * 10
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES), ("bad", bad)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(*words: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["score", *map(str, words)], input=typed, catch_exceptions=False)


def test_scores_are_those_of_an_evaluation_with_intervals_and_signatures(texts: Path) -> None:
    found = json.loads(run(texts / "hyp", "--ref", texts / "ref", "--json").stdout)
    before = score(HYPOTHESES, REFERENCES)
    bleu, chrf = found["scores"]
    assert found["sentences"] == 30
    assert (bleu["score"], bleu["low"], bleu["high"]) == (before.bleu, before.bleu_low, before.bleu_high)
    assert (bleu["signature"], chrf["signature"]) == (before.bleu_signature, before.chrf_signature)


def test_translations_may_come_through_a_pipe(texts: Path) -> None:
    piped = run("-", "--ref", texts / "ref", typed=(texts / "hyp").read_text(encoding="utf-8"))
    assert piped.stdout == run(texts / "hyp", "--ref", texts / "ref").stdout
    assert piped.stdout.splitlines()[0].startswith("BLEU ")


def test_a_better_system_is_named_in_a_sentence_for_each_metric(texts: Path) -> None:
    options = ("--ref", texts / "ref", "--metric", "ter,bleu", "--against")
    told = run(texts / "bad", *options, texts / "hyp").stdout.splitlines()
    assert [line.split()[0] for line in told[:2]] == ["BLEU", "TER"]
    assert all(line.startswith(f"{texts / 'hyp'} is better than {texts / 'bad'} by ") for line in told[2:])
    told = run(texts / "hyp", *options, texts / "hyp").stdout.splitlines()
    assert all("not told apart" in line for line in told[2:])


def test_few_sentences_are_said_to_be_too_few(texts: Path) -> None:
    for name in ("hyp", "bad", "ref"):
        (texts / name).write_text((texts / name).read_text(encoding="utf-8").split("\n")[0], encoding="utf-8")
    words = (texts / "hyp", "--ref", texts / "ref", "--metric", "bleu", "--against", texts / "bad")
    told = run(*words).stdout
    assert "(too few sentences for an interval)" in told
    assert "too few sentences to tell which is better by BLEU" in told
    assert "p =" not in told
    held = json.loads(run(*words, "--json").stdout)
    assert (held["scores"][0]["low"], held["compared"][0]["chance"]) == (None, None)
    assert held["compared"][0]["told_apart"] is None


def test_lines_part_at_newlines_alone_and_empty_ones_count(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_bytes("ein\u2028Satz\r\n\nnoch einer\n".encode())
    (tmp_path / "ref").write_bytes("ein\u2028Satz\n\nnoch einer".encode())
    found = json.loads(run(tmp_path / "hyp", "--ref", tmp_path / "ref", "--metric", "chrf", "--json").stdout)
    assert (found["sentences"], found["scores"][0]["score"]) == (3, 100.0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "either --ref FILE"),
        (["--ref", "ref", "--test-set", "wmt14", "--language-pair", "en-de"], "either --ref FILE"),
        (["--test-set", "wmt14"], "together"),
        (["--test-set", "wmt99", "--language-pair", "en-de"], "wmt99 is no test set"),
        (["--test-set", "wmt14", "--language-pair", "en-ja"], "wmt14 has no en-ja"),
        (["--test-set", "wmt14", "--language-pair", "german"], "no test set for 'german'"),
        (["--ref", "short"], "30 translations but 1 references"),
        (["--ref", "latin"], "Line 2 of latin is not UTF-8"),
        (["--ref", "ref", "--metric", "blue"], "no metric 'blue'"),
        (["--ref", "ref", "--tokenize", "no"], "no tokenizer 'no'"),
        (["--ref", "ref", "--comet", "model"], "--src"),
        (["--ref", "ref", "--against", "short"], "30 translations, but 1"),
    ],
)
def test_what_cannot_be_scored_is_told_in_one_sentence(
    words: list[str], sentence: str, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (texts / "short").write_text("eine Zeile\n")
    (texts / "latin").write_bytes(b"gut\nschl\xe4ft\n")
    monkeypatch.chdir(texts)
    with pytest.raises(TandemError, match=sentence) as refused:
        run("hyp", *words)
    assert "\n" not in str(refused.value)


def test_a_test_set_is_read_from_sacrebleus_cache(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = sacrebleu.DATASETS["wmt14"]
    monkeypatch.setattr(type(held), "get_source_file", lambda _self, _pair: str(texts / "hyp"))
    monkeypatch.setattr(type(held), "get_reference_files", lambda _self, _pair: [str(texts / "ref")])
    by_name = run(texts / "hyp", "--test-set", "wmt14", "--language-pair", "en-de").stdout
    assert by_name == run(texts / "hyp", "--ref", texts / "ref").stdout


def test_a_test_set_that_cannot_be_fetched_is_told_with_the_cure(
    texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: object, _pair: str) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(type(sacrebleu.DATASETS["wmt14"]), "get_source_file", refuse)
    with pytest.raises(TandemError, match=r"cannot be fetched \(no route to host\).*sacrebleu -t wmt14"):
        run(texts / "hyp", "--test-set", "wmt14", "--language-pair", "en-de")


def test_comet_that_is_not_installed_is_told(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.translate.comet.find_spec", lambda _name: None)
    with pytest.raises(TandemError, match="pip install unbabel-comet"):
        run(texts / "hyp", "--ref", texts / "ref", "--src", texts / "ref", "--comet", "model")


def test_comet_judges_source_translation_and_reference(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Judge:
        def predict(self, rows: list[dict[str, str]], **_: object) -> SimpleNamespace:
            assert rows[0] == {"src": REFERENCES[0], "mt": HYPOTHESES[0], "ref": REFERENCES[0]}
            return SimpleNamespace(system_score=0.875)

    comet = ModuleType("comet")
    comet.__dict__.update(download_model=lambda name: f"/{name}", load_from_checkpoint=lambda _path: Judge())
    monkeypatch.setitem(sys.modules, "comet", comet)
    monkeypatch.setattr("tandem.translate.comet.find_spec", lambda _name: True)
    told = run(texts / "hyp", "--ref", texts / "ref", "--src", texts / "ref", "--comet", "model")
    assert "COMET 0.8750" in told.stdout


class Trap:
    """What a stranger puts into a checkpoint."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (self.place, 0o700)


class Judge:
    def predict(self, _rows: object, **_: object) -> SimpleNamespace:
        return SimpleNamespace(system_score=0.5)


@pytest.fixture
def lightning(monkeypatch: pytest.MonkeyPatch) -> None:
    """COMET as far as it reads a checkpoint: by Lightning, which asks for all that is in the pickle."""

    def load(path: str) -> Judge:
        torch.load(path, weights_only=False)
        return Judge()

    comet = ModuleType("comet")
    comet.__dict__.update(load_from_checkpoint=load)
    monkeypatch.setitem(sys.modules, "comet", comet)
    monkeypatch.setattr("tandem.translate.comet.find_spec", lambda _name: True)


@pytest.mark.usefixtures("lightning")
def test_a_comet_model_of_a_stranger_runs_nothing_unless_it_is_trusted(texts: Path, tmp_path: Path) -> None:
    model, place = tmp_path / "model.ckpt", tmp_path / "ran"
    torch.save({"state_dict": {}, "callbacks": Trap(str(place))}, model)
    words = (texts / "hyp", "--ref", texts / "ref", "--src", texts / "ref", "--comet", model)
    with pytest.raises(TandemError, match="could run any code: .*--trust-comet"):
        run(*words)
    assert not place.exists()
    assert "COMET 0.5000" in run(*words, "--trust-comet").stdout
    assert place.exists()


@pytest.mark.usefixtures("lightning")
def test_a_comet_model_of_numbers_needs_no_trust(texts: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.ckpt"
    torch.save({"state_dict": {"a": torch.zeros(3)}, "hyper_parameters": {"layers": 2}}, model)
    told = run(texts / "hyp", "--ref", texts / "ref", "--src", texts / "ref", "--comet", model)
    assert "COMET 0.5000" in told.stdout
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ
