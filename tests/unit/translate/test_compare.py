"""Two texts are told apart where chance would not make the difference, as sacreBLEU's paired bootstrap finds too."""

import random
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from tandem.data.corpus.builtin import builtin_pairs
from tandem.errors import TandemError
from tandem.translate.compare import compare

REFERENCES = [target for _, target in builtin_pairs(seed=1, split="test", count=120)]


def spoilt(share: float, *, seed: int) -> list[str]:
    """The references with a share of their words replaced."""
    drawn = random.Random(seed)
    return [
        " ".join("falsch" if drawn.random() < share else word for word in line.split()) for line in REFERENCES
    ]


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.3), (0.2, 0.22), (0.2, 0.24)])
def test_chance_is_that_of_sacrebleus_paired_bootstrap(first: float, second: float) -> None:
    texts = [spoilt(first, seed=1), spoilt(second, seed=2)]
    test = PairedTest(
        [("first", texts[0]), ("second", texts[1])],
        {"BLEU": BLEU(references=[REFERENCES])},
        references=None,
        test_type="bs",
        n_samples=1_000,
    )
    theirs: Any = test()[1]["BLEU"][1]
    assert compare(texts[0], texts[1], [REFERENCES]).chance == pytest.approx(theirs.p_value, abs=0.06)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_much_better_text_is_told_apart_and_says_which(metric: str) -> None:
    good, bad = spoilt(0.05, seed=1), spoilt(0.4, seed=2)
    found = compare(good, bad, [REFERENCES], metric=metric)  # type: ignore[arg-type]
    assert found.is_told_apart
    assert found.is_better
    assert not compare(bad, good, [REFERENCES], metric=metric).is_better  # type: ignore[arg-type]


def test_texts_of_the_same_quality_are_not_told_apart() -> None:
    found = compare(spoilt(0.2, seed=1), spoilt(0.2, seed=2), [REFERENCES])
    assert found.first != found.second
    assert not found.is_told_apart


def test_a_text_is_not_told_apart_from_itself() -> None:
    found = compare(REFERENCES, REFERENCES, [REFERENCES])
    assert found.chance == 1.0
    assert not found.is_told_apart


def test_unequal_numbers_of_lines_are_told_with_both() -> None:
    with pytest.raises(TandemError, match=r"120 translations, but 119"):
        compare(REFERENCES, REFERENCES[1:], [REFERENCES])


def test_few_sentences_are_not_told_apart_however_much_they_differ() -> None:
    good, bad = REFERENCES[:29], spoilt(0.5, seed=1)[:29]
    found = compare(good, bad, [REFERENCES[:29]])
    assert found.first > found.second
    assert found.chance is None
    assert not found.is_told_apart
    assert compare(REFERENCES[:30], spoilt(0.5, seed=1)[:30], [REFERENCES[:30]]).is_told_apart
