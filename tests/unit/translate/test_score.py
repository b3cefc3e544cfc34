import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from tandem.errors import TandemError
from tandem.translate.score import Scores, corpus_bleu, score

REFERENCES = ["Der Hund läuft durch den Garten.", "Die Katze schläft.", "Wir lesen (heute) drei Bücher!"] * 4
HYPOTHESES = ["Der Hund rennt durch den garten.", "Die Katze schläft. ", "Wir lesen drei Bücher, heute!"] * 4


def by_command(folder: Path, *options: str) -> list[dict[str, object]]:
    """What sacreBLEU's own command prints."""
    for name, lines in (("hypotheses", HYPOTHESES), ("references", REFERENCES)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", "hypotheses", "-m", "bleu", "chrf"]
    printed = subprocess.run(
        [*command, "-w", "12", *options], cwd=folder, check=True, capture_output=True, text=True
    )
    found: list[dict[str, object]] = json.loads(printed.stdout)
    return found


@pytest.mark.parametrize(
    ("tokenize", "lowercase", "options"),
    [
        ("13a", False, []),
        ("none", True, ["--tokenize", "none", "--lowercase", "--chrf-lowercase"]),
        ("intl", False, ["--tokenize", "intl"]),
    ],
)
def test_scores_and_signatures_equal_those_of_the_command(
    tmp_path: Path, tokenize: str, lowercase: bool, options: list[str]
) -> None:
    bleu, chrf = by_command(tmp_path, *options)
    found = score(HYPOTHESES, REFERENCES, tokenize=tokenize, lowercase=lowercase)
    assert found.bleu == pytest.approx(bleu["score"], abs=1e-9)
    assert found.chrf == pytest.approx(chrf["score"], abs=1e-9)
    assert found.bleu_signature == bleu["signature"]
    assert found.chrf_signature == chrf["signature"]
    assert found.sentences == len(REFERENCES)


def test_the_signature_says_what_was_done() -> None:
    signature = score(HYPOTHESES, REFERENCES, tokenize="none", lowercase=True).bleu_signature
    assert {"tok:none", "case:lc", "nrefs:1"} <= set(signature.split("|"))


def test_equal_text_scores_a_hundred_and_other_text_next_to_nothing() -> None:
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    assert score(["x"] * 12, REFERENCES).bleu < 1


def test_sacrebleu_warns_of_tokenised_text_unless_told_that_it_is(caplog: pytest.LogCaptureFixture) -> None:
    tokenised = ["das ist so ."] * 100
    with caplog.at_level(logging.WARNING, "sacrebleu"):
        score(tokenised, tokenised, tokenize="none")
        assert not caplog.records
        score(tokenised, tokenised)
    assert "tokenized" in caplog.text


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(TandemError, match="2 translations but 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(TandemError, match="nothing to score"):
        score([], [])
    with pytest.raises(TandemError, match="no tokenizer 'moses': use one of"):
        score(["a"], ["a"], tokenize="moses")


def test_scores_are_a_value() -> None:
    assert score(["a b c d"], ["a b c d"]) == score(["a b c d"], ["a b c d"])
    assert isinstance(score(["a b c d"], ["a b c d"]), Scores)


def test_the_interval_holds_the_score_and_narrows_with_more_sentences() -> None:
    few, many = (score(HYPOTHESES * times, REFERENCES * times) for times in (1, 16))
    assert few.bleu_low < few.bleu < few.bleu_high
    assert many.bleu_high - many.bleu_low < (few.bleu_high - few.bleu_low) / 2


def test_the_interval_is_the_same_each_time_and_that_of_sacrebleu() -> None:
    hypotheses, references = HYPOTHESES * 10, REFERENCES * 10
    found = score(hypotheses, references)
    assert score(hypotheses, references) == found
    theirs = BLEU().corpus_score(hypotheses, [references], n_bootstrap=1000)
    assert (found.bleu_high - found.bleu_low) / 2 == pytest.approx(theirs._ci, rel=0.15)


def test_one_sentence_has_no_interval_to_speak_of() -> None:
    found = score(REFERENCES[:1], REFERENCES[:1])
    assert found.bleu_low == found.bleu_high == pytest.approx(100)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 3, 7]), st.sampled_from([0, 1, 5])), min_size=4, max_size=4),
    st.sampled_from([0, 5, 9]),
    st.sampled_from([1, 5, 9]),
)
def test_sums_of_counts_score_as_sacrebleu_scores_them(
    orders: list[tuple[int, int]], length: int, reference: int
) -> None:
    matches, grams = [match for match, _ in orders], [match + more for match, more in orders]
    sums = np.array([[length, reference, *matches, *grams]])
    theirs = BLEU.compute_bleu(matches, grams, length, reference, smooth_method="exp").score
    assert corpus_bleu(sums).item() == pytest.approx(theirs, abs=1e-9)
