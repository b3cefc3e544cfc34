"""Scores of a translated text equal those of sacreBLEU's own command, with intervals around them."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import pytest

from tandem.errors import TandemError
from tandem.translate.measure import METRICS, Metric, Rules, measure
from tandem.translate.score import score

REFERENCES = ["Der Hund läuft durch den Garten.", "Die Katze schläft.", "Wir lesen (heute) drei Bücher!"] * 10
OTHERS = ["Der Hund rennt durch den Garten.", "Die Katze schläft nun.", "Wir lesen heute drei Bücher."] * 10
HYPOTHESES = ["Der Hund rennt durch den garten.", "Die Katze schläft. ", "Wir lesen drei Bücher, heute!"] * 10


def test_all_metrics_equal_those_of_the_command_with_two_references(tmp_path: Path) -> None:
    for name, lines in (("hypotheses", HYPOTHESES), ("first", REFERENCES), ("second", OTHERS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "first", "second", "-i", "hypotheses", "-m", *METRICS]
    printed = subprocess.run([*command, "-w", "9"], cwd=tmp_path, check=True, capture_output=True, text=True)
    theirs = json.loads(printed.stdout)
    ours = measure(HYPOTHESES, [REFERENCES, OTHERS], metrics=METRICS)
    assert [each.score for each in ours] == pytest.approx([each["score"] for each in theirs], abs=1e-8)
    assert [each.signature for each in ours] == [each["signature"] for each in theirs]


@pytest.mark.parametrize("metric", METRICS)
def test_the_interval_lies_around_the_score_and_shrinks_with_more_sentences(metric: Metric) -> None:
    (few,) = measure(HYPOTHESES, [REFERENCES], metrics=[metric])
    (many,) = measure(HYPOTHESES * 9, [REFERENCES * 9], metrics=[metric])
    assert few.low is not None
    assert few.high is not None
    assert many.low is not None
    assert many.high is not None
    assert few.low < few.score < few.high
    assert many.high - many.low < (few.high - few.low) / 2


@pytest.mark.parametrize("metric", METRICS)
def test_few_sentences_have_a_score_but_no_interval(metric: Metric) -> None:
    (found,) = measure(HYPOTHESES[:29], [REFERENCES[:29]], metrics=[metric])
    assert found.score > 0
    assert (found.low, found.high) == (None, None)


def test_bleu_and_its_interval_are_those_of_an_evaluation_while_training() -> None:
    (bleu, chrf) = measure(HYPOTHESES, [REFERENCES], rules=Rules(tokenize="intl", lowercase=True))
    before = score(HYPOTHESES, REFERENCES, tokenize="intl", lowercase=True)
    assert (bleu.score, bleu.low, bleu.high) == (before.bleu, before.bleu_low, before.bleu_high)
    assert (bleu.signature, chrf.signature) == (before.bleu_signature, before.chrf_signature)
    assert chrf.score == pytest.approx(before.chrf, abs=1e-9)


@pytest.mark.parametrize(
    ("hypotheses", "references", "sentence"),
    [
        (["a"], [["a", "b"]], "1 translations but 2 references"),
        (["a"], [["a"], []], "1 translations but 0 references"),
        (["a"], [], "at least one reference"),
        ([], [[]], "nothing to score"),
    ],
)
def test_texts_that_do_not_pair_are_refused(
    hypotheses: list[str], references: list[list[str]], sentence: str
) -> None:
    with pytest.raises(TandemError, match=sentence):
        measure(hypotheses, references)


def test_a_tokenizer_that_there_is_not_is_refused() -> None:
    with pytest.raises(TandemError, match=r"no tokenizer 'klingon'.*13a"):
        Rules(tokenize="klingon")


@pytest.mark.parametrize(
    ("tokenize", "failure", "sentence"),
    [
        ("ja-mecab", RuntimeError("\nJapanese\n"), r"pip install 'sacrebleu\[ja\]'"),
        ("ko-mecab", RuntimeError("\nKorean\n"), r"pip install 'sacrebleu\[ko\]'"),
        ("flores200", URLError("no route to host"), "flores200 .* over the network .*no route to host"),
    ],
)
def test_a_tokenizer_that_needs_more_is_told_in_one_sentence(
    tokenize: str, failure: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise failure

    monkeypatch.setattr("tandem.translate.score.BLEU.__init__", lambda _self, **said: refuse(**said))
    with pytest.raises(TandemError, match=sentence) as refused:
        measure(HYPOTHESES, [REFERENCES], rules=Rules(tokenize=tokenize))
    assert "\n" not in str(refused.value)
