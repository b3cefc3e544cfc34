"""The real command line learns: a part of the demo must reach a part of its score, whichever way it is asked."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tandem.data.prepared import open_prepared
from tandem.runlog.event import Event, LossMeasured, TranslationScored
from tandem.runlog.reader import read_records

TANDEM = str(Path(sys.executable).with_name("tandem"))
SENTENCES = 100
MOST_APART = 0.1

pytestmark = pytest.mark.xdist_group("learning")


def tandem(*words: str, given: str = "") -> str:
    return subprocess.run(
        [TANDEM, *words], input=given, check=True, capture_output=True, text=True, timeout=280
    ).stdout


@pytest.fixture(scope="module")
def learned(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, with its data beside it."""
    folder = tmp_path_factory.mktemp("learned")
    words = ["train", str(repository / "recipes" / "demo.yaml"), "--run", str(folder / "run")]
    words += ["--workers", "1", "--device", "cpu", f"data.folder={folder / 'data'}"]
    words += ["train.max_steps=200", f"evaluate.sentences={SENTENCES}", "data.train.0.builtin.pairs=12000"]
    tandem(*words, "batch.target_tokens=1024")
    return folder


def events(folder: Path) -> list[Event]:
    return [record.event for record in read_records(folder / "run")]


def test_a_fifth_of_the_demo_s_steps_translate_a_fifth_as_well(learned: Path) -> None:
    losses = {event.set: event.loss for event in events(learned) if isinstance(event, LossMeasured)}
    scores = [event.bleu for event in events(learned) if isinstance(event, TranslationScored)]
    assert losses["valid"] < 2.0
    assert scores[-1] > 18


def test_bleu_is_the_same_in_training_translated_served_and_exported(learned: Path, tmp_path: Path) -> None:
    run, exported = str(learned / "run"), str(tmp_path / "ct2")
    valid = open_prepared(learned / "data").held_out_text("valid")
    lines = list(valid.source[:SENTENCES])
    sources = "".join(f"{line}\n" for line in lines)
    (tmp_path / "references").write_text("".join(f"{line}\n" for line in valid.target[:SENTENCES]))
    *_, trained = (event.bleu for event in events(learned) if isinstance(event, TranslationScored))
    tandem("export", run, exported, "--to", "ctranslate2")
    ways = {
        "translated": tandem("translate", run, "--engine", "torch", "--device", "cpu", given=sources),
        "served": served(run, lines),
        "exported": tandem("translate", exported, given=sources),
    }
    for way, said in ways.items():
        (tmp_path / way).write_text(said)
        told = json.loads(
            tandem("score", str(tmp_path / way), "--ref", str(tmp_path / "references"), "--json")
        )
        assert bleu_of(told) == pytest.approx(trained, abs=MOST_APART), way


def bleu_of(told: dict[str, list[dict[str, float | str]]]) -> float:
    return next(float(each["score"]) for each in told["scores"] if each["metric"] == "bleu")


def served(model: str, sources: list[str]) -> str:
    words = [TANDEM, "serve", f"one={model}", "--port", "0", "--engine", "torch", "--device", "cpu"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(line.split()[-1] for line in process.stderr if line.startswith("Translating at"))
            answer = httpx.post(f"{address}translate", json={"text": sources}, timeout=120)
        finally:
            process.kill()
    return "".join(f"{each['text']}\n" for each in answer.json()["translations"])
