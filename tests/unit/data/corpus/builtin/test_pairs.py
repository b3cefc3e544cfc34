"""The stream of pairs: distinct, split without overlap, the same for ever, and German in its order of words."""

import re
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.data.corpus.builtin import builtin_pairs, pairs
from tandem.data.corpus.builtin.adjectives import ADJECTIVES, MOODS, SUITED
from tandem.data.corpus.builtin.adverbs import SPOKEN_PAST
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import pool
from tandem.data.corpus.builtin.german import NOM
from tandem.data.corpus.builtin.german_clause import say_adverbial, say_clause, say_nominal
from tandem.data.corpus.builtin.identity import Split, split_of
from tandem.data.corpus.builtin.meaning import Clause
from tandem.data.corpus.builtin.nouns import NOUNS
from tandem.data.corpus.builtin.patterns import draw_sentence
from tandem.data.corpus.builtin.sentence import Complex, Statement
from tandem.data.corpus.builtin.verbs import VERBS
from tandem.errors import TandemError

SPLITS: tuple[Split, ...] = get_args(Split)
GOLDEN = "2bf68df3565a559d"


@pytest.fixture(scope="module")
def drawn() -> dict[Split, list[tuple[str, str]]]:
    counts = {"train": 24_000, "valid": 3_000, "test": 3_000}
    return {split: list(builtin_pairs(seed=1, split=split, count=counts[split])) for split in SPLITS}


def test_no_sentence_comes_twice_on_either_side(drawn: dict[Split, list[tuple[str, str]]]) -> None:
    for found in drawn.values():
        assert len({english for english, _ in found}) == len({german for _, german in found}) == len(found)


def test_splits_share_no_sentence_even_across_seeds(drawn: dict[Split, list[tuple[str, str]]]) -> None:
    seen = {side: {pair[side] for pair in drawn["train"]} for side in (0, 1)}
    for split in ("valid", "test"):
        others = [*drawn[split], *builtin_pairs(seed=2, split=split, count=1_000)]
        assert not any(pair[side] in seen[side] for pair in others for side in (0, 1))


def test_the_same_words_decide_the_same_split_whoever_says_them() -> None:
    dice = Dice(Random(3))
    split_by_text: dict[str, Split] = {}
    for _ in range(20_000):
        sentence = draw_sentence(dice)
        split = split_of(sentence)
        assert split_by_text.setdefault(f"en {sentence.english()}", split) == split
        assert split_by_text.setdefault(f"de {sentence.german()}", split) == split


def test_about_a_tenth_of_all_meanings_goes_to_each_held_out_split() -> None:
    dice = Dice(Random(4))
    splits = [split_of(draw_sentence(dice)) for _ in range(5_000)]
    assert 0.06 < splits.count("valid") / 5_000 < 0.15
    assert 0.06 < splits.count("test") / 5_000 < 0.15


def test_the_stream_is_the_same_for_ever() -> None:
    text = "\n".join(
        f"{english}\t{german}" for english, german in builtin_pairs(seed=7, split="train", count=500)
    )
    assert sha256(text.encode()).hexdigest()[:16] == GOLDEN


def test_a_larger_count_continues_a_smaller_one() -> None:
    few = list(builtin_pairs(seed=5, split="valid", count=20))
    assert list(islice(builtin_pairs(seed=5, split="valid", count=10**9), 20)) == few


def test_other_seeds_give_other_sentences() -> None:
    first, second = (list(builtin_pairs(seed=seed, split="train", count=50)) for seed in (1, 2))
    assert first != second


def test_an_exhausted_grammar_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    only = draw_sentence(Dice(Random(1)))
    monkeypatch.setattr(pairs, "draw_sentence", lambda _dice: only)
    monkeypatch.setattr(pairs, "_PATIENCE", 50)
    with pytest.raises(TandemError, match="ask for fewer"):
        list(builtin_pairs(seed=1, split=split_of(only), count=2))


def test_the_table_of_seen_hashes_grows_and_forgets_nothing() -> None:
    seen = pairs._Seen()
    keys = [Random(i).getrandbits(64) or 1 for i in range(10_000)]
    for key in keys:
        seen.add(key)
    assert all(key in seen for key in keys)
    assert not any(key ^ 1 in seen for key in keys[:100])


def test_lengths_and_shapes(drawn: dict[Split, list[tuple[str, str]]]) -> None:
    lengths = [len(english.split()) for english, _ in drawn["train"]]
    assert min(lengths) >= 3
    assert max(lengths) <= 26
    assert 8 <= sum(lengths) / len(lengths) <= 12
    for english, german in drawn["train"]:
        for text in (english, german):
            assert re.fullmatch(r"[A-ZÄÖÜ][\w ,.'-]*[\w][.?]", text), text
            assert "  " not in text
            assert " ," not in text
        assert english[-1] == german[-1]


def test_the_vocabulary_holds_over_500_words() -> None:
    german = {noun.german[0] for noun in NOUNS}
    german |= {adjective.predicate for adjective in (*ADJECTIVES, *MOODS)}
    german |= {verb.german.infinitive for verb in VERBS}
    english = {noun.english[0] for noun in NOUNS}
    english |= {adjective.english[0] for adjective in (*ADJECTIVES, *MOODS)}
    english |= {verb.english.base for verb in VERBS}
    assert len(german) >= 500
    assert len(english) >= 480


def phrases(tag: str) -> int:
    """How many definite singular phrases with at most one adjective the nouns of a class make."""
    return sum(1 + len(SUITED[noun]) for noun in pool((tag,)))


def test_one_verb_alone_makes_over_fifty_million_pairs() -> None:
    giving = phrases("person") * (phrases("person") - 40) * phrases("gift") * len(SPOKEN_PAST)
    assert giving > 50_000_000


def finite_verb(clause: Clause) -> str:
    """The word that a yes-or-no question begins with."""
    return say_clause(replace(clause, front=None), "first").split(" ")[0]


def said_subject(clause: Clause) -> str:
    if "there" in clause.verb.flags:
        return "es"
    return say_nominal(clause.complements[0] if "swap" in clause.verb.flags else clause.subject, NOM)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_one_constituent_stands_before_the_finite_verb_of_a_statement(seed: int) -> None:
    sentence = draw_sentence(Dice(Random(seed)))
    if isinstance(sentence, Statement):
        clause = sentence.clause
        first = say_adverbial(clause.front) if clause.front else said_subject(clause)
        assert say_clause(clause, "second").startswith(f"{first} {finite_verb(clause)}")


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_the_finite_verb_ends_a_subordinate_clause_and_a_comma_parts_it(seed: int) -> None:
    sentence = draw_sentence(Dice(Random(seed)))
    if isinstance(sentence, Complex):
        clause, text = sentence.subordinate, sentence.german()
        finite = finite_verb(clause)
        assert say_clause(clause, "last").endswith(finite)
        assert (
            f"{finite}, " in text
            if sentence.is_subordinate_first
            else f", {sentence.conjunction.german} " in text
        )


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_both_sides_are_questions_or_neither_is(seed: int) -> None:
    sentence = draw_sentence(Dice(Random(seed)))
    assert sentence.english()[-1] == sentence.german()[-1]
